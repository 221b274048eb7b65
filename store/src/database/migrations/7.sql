-- Format 7 of provenance.db. Shipped: never edit this file, add the next number instead.

-- How often it was resumed from a checkpoint before it came to its end. NULL: never, or recorded by a program that
-- had none.
ALTER TABLE executions ADD COLUMN resumed INTEGER;
