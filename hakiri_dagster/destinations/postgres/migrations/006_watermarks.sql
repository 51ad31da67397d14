-- How far each table of load mode incremental_watermark has come. `position` is NULL while nothing with a watermark is
-- published: `value` is then the floor of its type. What the target held before our first load is `inherited`: its
-- highest value not after that moment, and the highest position of all.
CREATE TABLE hakiri.pipeline_watermarks (
    tenant             text        NOT NULL,
    pipeline_id        text        NOT NULL,
    target_schema      text        NOT NULL,
    target_table       text        NOT NULL,
    watermark_column   text        NOT NULL,
    value              text        NOT NULL,
    type               text        NOT NULL,
    position           bigint,
    inherited          boolean     NOT NULL,
    inherited_value    text,
    inherited_position bigint,
    inherited_top      bigint,
    updated_at         timestamptz NOT NULL DEFAULT clock_timestamp(),
    PRIMARY KEY (tenant, pipeline_id, target_schema, target_table)
);
