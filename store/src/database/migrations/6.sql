-- Format 6 of provenance.db. Shipped: never edit this file, add the next number instead.

-- Where it ran, which need not be where its run was started.
-- NULL: recorded by a program that took the two to be one.
ALTER TABLE executions ADD COLUMN environment TEXT REFERENCES environments (digest);
