-- Format 5 of provenance.db. Shipped: never edit this file, add the next number instead.

-- The pipeline file as it was read, once for each text.
CREATE TABLE texts (
    digest TEXT PRIMARY KEY,
    text   TEXT NOT NULL
) STRICT, WITHOUT ROWID;
-- Of the pipeline file. NULL: recorded by a program that did not keep it.
ALTER TABLE runs ADD COLUMN source TEXT REFERENCES texts (digest);

-- Faults of the log that somebody has seen. They stay faults, and are no longer news.
CREATE TABLE noted (
    id    INTEGER PRIMARY KEY AUTOINCREMENT,
    fault TEXT NOT NULL UNIQUE,
    at    INTEGER NOT NULL
) STRICT;

-- An audit asks for the entries of a few rows.
CREATE INDEX log_by_row ON log (row, what);
