-- Which project publishes a table to a target. Without a row it was published before this was recorded.
CREATE TABLE hakiri.publisher (
    target       text        NOT NULL,
    pipeline_id  text        NOT NULL,
    table_name   text        NOT NULL,
    project_id   text,
    project_name text        NOT NULL,
    source       text,
    claimed_at   timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (target, pipeline_id, table_name)
);
-- The pipelines and tables with rows in a target are found without reading the entries of all their loads.
CREATE INDEX ledger_publisher_idx ON hakiri.ledger (target, pipeline_id, table_name)
    WHERE superseded_by IS NULL AND rows > 0;
