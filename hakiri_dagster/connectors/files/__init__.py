"""The `files` connector: CSV, JSON lines, Parquet and ORC, from a file, a folder or a glob."""
