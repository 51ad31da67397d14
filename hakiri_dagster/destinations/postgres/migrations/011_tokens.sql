-- Of a segment: what leads to the next one, in the source's own words; empty where it had no more.
ALTER TABLE hakiri.ledger ADD COLUMN token text;
