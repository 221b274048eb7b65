-- Format 4 of provenance.db. Shipped: never edit this file, add the next number instead.

-- What was recorded, in order. Each entry is sealed together with the one before, so that a row
-- that is changed or removed afterwards does not fit any more. Older rows are not in it.
CREATE TABLE log (
    id      INTEGER PRIMARY KEY AUTOINCREMENT,
    what    TEXT NOT NULL,              -- run, execution, end, tag, accept
    row     INTEGER NOT NULL,           -- of the row that it is about
    content TEXT NOT NULL,              -- digest of what the row says
    seal    TEXT NOT NULL               -- digest of the seal before, what, row and content
) STRICT;

-- A person said that a change of code does not change a result, so that the old one stays in use.
CREATE TABLE acceptances (
    id        INTEGER PRIMARY KEY AUTOINCREMENT,
    instance  TEXT NOT NULL,
    execution INTEGER NOT NULL REFERENCES executions (id),  -- whose result is used
    old_code  TEXT NOT NULL,
    new_code  TEXT NOT NULL,
    new_key   TEXT NOT NULL,            -- the key that it is used for
    who       TEXT NOT NULL,
    at        INTEGER NOT NULL,
    reason    TEXT NOT NULL
) STRICT;
CREATE INDEX acceptances_by_key ON acceptances (new_key);

-- How a program was confined while it ran. NULL: no program ran, or it was not recorded.
ALTER TABLE executions ADD COLUMN sandbox TEXT;
