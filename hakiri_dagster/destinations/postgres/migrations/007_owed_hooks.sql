-- Post-hooks that published loads wait for: written in the publish transaction, taken away one by one as they have run.
CREATE TABLE hakiri.owed_hook (
    pipeline_id text        NOT NULL,
    table_name  text        NOT NULL,
    target      text        NOT NULL,
    hook        text        NOT NULL,
    described   text        NOT NULL,
    load_ids    bigint[]    NOT NULL,
    owed_at     timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (pipeline_id, table_name, target, hook)
);
