-- One database may hold several projects with the same pipelines, each with targets of its own.
-- No attempt outlives an upgrade, so no fence has to.
DELETE FROM hakiri.fence;
ALTER TABLE hakiri.fence
    ADD COLUMN target text NOT NULL,
    DROP CONSTRAINT fence_pkey,
    ADD PRIMARY KEY (pipeline_id, table_name, target, chunk_key);
