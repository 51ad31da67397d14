-- How each load told its rows apart, so that a changed mode or key is noticed. NULL: loaded before this was noted.
ALTER TABLE hakiri.ledger
    ADD COLUMN upsert_key text[],
    ADD COLUMN primary_key text[];
CREATE INDEX ledger_mode_idx ON hakiri.ledger (pipeline_id, table_name, target, mode);
