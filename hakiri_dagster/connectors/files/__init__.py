"""The `files` connector: CSV, JSON lines, Parquet and ORC, from a file, a folder or a glob."""

from hakiri_dagster.connectors.files.connector import FILES
from hakiri_dagster.connectors.files.read_errors import explain_read_error

__all__ = ["FILES", "explain_read_error"]
