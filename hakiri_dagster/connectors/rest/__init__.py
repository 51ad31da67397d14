"""The `rest` connector: lists of records of an API that answers with JSON."""
