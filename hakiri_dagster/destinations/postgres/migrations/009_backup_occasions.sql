-- What several runs have in common, so that they make one copy together. NULL: made before this was noted.
ALTER TABLE hakiri.backup ADD COLUMN occasion text;
