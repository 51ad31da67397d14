-- A replay adds rows to a chunk that is published, and says nothing of how far the chunk has come.
ALTER TABLE hakiri.ledger ADD COLUMN is_replay boolean NOT NULL DEFAULT false;
