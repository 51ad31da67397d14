"""JSON objects as typed columns, for every connector that reads JSON: values land as they were written."""
