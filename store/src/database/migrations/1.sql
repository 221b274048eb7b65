-- Format 1 of provenance.db. Shipped: never edit this file, add the next number instead.
-- Times are microseconds since 1970 (UTC), durations are microseconds, digests are BLAKE3 in hexadecimal.
-- Environment variables are never stored.

CREATE TABLE environments (
    id           INTEGER PRIMARY KEY,
    digest       TEXT NOT NULL UNIQUE,  -- of everything below, so that equal environments are one row
    git_commit   TEXT,
    git_dirty    INTEGER,
    ablate       TEXT NOT NULL,         -- version of the program
    crates       TEXT NOT NULL,         -- JSON {name: version}
    rustc        TEXT NOT NULL,
    host         TEXT NOT NULL,
    os           TEXT NOT NULL,
    cpu_model    TEXT NOT NULL,
    cpu_features TEXT NOT NULL,         -- JSON list
    threads      INTEGER NOT NULL
) STRICT;

CREATE TABLE runs (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    started     INTEGER NOT NULL,
    ended       INTEGER,                -- NULL: still running, or its process died
    outcome     TEXT,                   -- ok, failed, interrupted
    pipeline    TEXT NOT NULL,
    file        TEXT NOT NULL,
    profile     TEXT,
    settings    TEXT NOT NULL,          -- JSON of what --set changed
    targets     TEXT NOT NULL,          -- JSON list
    environment INTEGER NOT NULL REFERENCES environments (id)
) STRICT;

CREATE TABLE tags (
    name TEXT PRIMARY KEY,
    run  INTEGER NOT NULL REFERENCES runs (id)
) STRICT, WITHOUT ROWID;

-- The sources behind a code fingerprint, once for each fingerprint.
CREATE TABLE codes (
    id     INTEGER PRIMARY KEY,
    digest TEXT NOT NULL UNIQUE,
    files  TEXT NOT NULL                -- JSON {file: digest}
) STRICT;

CREATE TABLE executions (
    id          INTEGER PRIMARY KEY AUTOINCREMENT,
    run         INTEGER NOT NULL REFERENCES runs (id),
    instance    TEXT NOT NULL,          -- scaled[scale=1]
    kind        TEXT NOT NULL,
    key         TEXT NOT NULL,          -- digest of key_json
    key_json    TEXT NOT NULL,
    code        INTEGER NOT NULL REFERENCES codes (id),
    seed        TEXT,                   -- text, because a seed may exceed SQLite's integers
    started     INTEGER NOT NULL,
    wall        INTEGER NOT NULL,
    cpu         INTEGER,
    peak_memory INTEGER,
    ok          INTEGER NOT NULL,
    message     TEXT,                   -- of a failure
    log         TEXT NOT NULL
) STRICT;
CREATE INDEX executions_by_key ON executions (key, ok);
CREATE INDEX executions_by_instance ON executions (instance);
CREATE INDEX executions_by_kind ON executions (kind);

CREATE TABLE inputs (
    execution INTEGER NOT NULL REFERENCES executions (id),
    port      TEXT NOT NULL,
    ordinal   INTEGER NOT NULL,         -- a port that collects an axis has several
    axes      TEXT,                     -- JSON of the producer's axis values
    producer  TEXT NOT NULL,            -- instance that made it in that run
    digest    TEXT NOT NULL,
    PRIMARY KEY (execution, port, ordinal)
) STRICT, WITHOUT ROWID;

CREATE TABLE outputs (
    execution INTEGER NOT NULL REFERENCES executions (id),
    ordinal   INTEGER NOT NULL,
    name      TEXT NOT NULL,
    digest    TEXT NOT NULL,
    row_count INTEGER NOT NULL,
    bytes     INTEGER NOT NULL,
    columns   TEXT NOT NULL,            -- x: Int64, t: Utf8
    PRIMARY KEY (execution, ordinal)
) STRICT, WITHOUT ROWID;
CREATE INDEX outputs_by_digest ON outputs (digest);

-- Which run used which execution: its own, or one found in the cache.
CREATE TABLE uses (
    run       INTEGER NOT NULL REFERENCES runs (id),
    instance  TEXT NOT NULL,
    status    TEXT NOT NULL,            -- ran, hit, failed, skipped
    key       TEXT,
    execution INTEGER REFERENCES executions (id),
    wall      INTEGER NOT NULL,
    PRIMARY KEY (run, instance)
) STRICT, WITHOUT ROWID;
