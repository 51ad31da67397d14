-- Tables that loads are making, to take the place of others. What no load works on any more is swept by the next one.
CREATE TABLE hakiri.sibling (
    relation   oid         PRIMARY KEY,
    target     text        NOT NULL,
    load_id    bigint      NOT NULL,
    created_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
-- Foreign keys of other tables that were put on again after an exchange and are still to be checked.
CREATE TABLE hakiri.unchecked_key (
    target          text NOT NULL,
    child           text NOT NULL,
    constraint_name text NOT NULL,
    PRIMARY KEY (child, constraint_name)
);
