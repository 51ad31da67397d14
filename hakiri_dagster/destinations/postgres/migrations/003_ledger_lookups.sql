-- What a new load replaces is found by content, key or bounds, however many loads the table has had.
DROP INDEX hakiri.ledger_table_idx, hakiri.ledger_target_idx;
CREATE INDEX ledger_chunk_idx ON hakiri.ledger (pipeline_id, table_name, target, chunk_key, load_id)
    WHERE superseded_by IS NULL;
CREATE INDEX ledger_kind_idx ON hakiri.ledger
    (pipeline_id, table_name, target, (bounds ->> 'kind'), (bounds ->> 'hash'))
    WHERE superseded_by IS NULL;
CREATE INDEX ledger_range_idx ON hakiri.ledger
    USING gist (numrange((bounds ->> 'lower')::numeric, (bounds ->> 'upper')::numeric))
    WHERE superseded_by IS NULL AND bounds ->> 'kind' = 'range';
CREATE INDEX ledger_target_idx ON hakiri.ledger (target);
