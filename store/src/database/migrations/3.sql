-- Format 3 of provenance.db. Shipped: never edit this file, add the next number instead.

-- Parameters of the key that nobody wrote, as a JSON list: their values are the kind's defaults.
-- NULL in rows of older formats: it was not recorded.
ALTER TABLE executions ADD COLUMN defaults TEXT;
-- What the kind promises of its bytes: bit-identical, within-tolerance, outside-program.
ALTER TABLE executions ADD COLUMN determinism TEXT;
-- Files from outside that were read, as JSON [{name, checksum, bytes}].
ALTER TABLE executions ADD COLUMN raw TEXT;
