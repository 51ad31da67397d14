-- Copies of targets as they were before a load, or before the restoring of another copy; in this schema.
CREATE TABLE hakiri.backup (
    load_id     bigint PRIMARY KEY,
    pipeline_id text NOT NULL,
    table_name  text NOT NULL,
    target      text NOT NULL,
    run_id      text NOT NULL,
    relation    name NOT NULL,
    rows        bigint NOT NULL,
    made_before text NOT NULL,
    made_at     timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX backup_table_idx ON hakiri.backup (pipeline_id, table_name, target, made_at);
