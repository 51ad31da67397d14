"""Pure planning: no I/O, no Spark, no database."""
