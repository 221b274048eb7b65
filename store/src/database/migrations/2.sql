-- Format 2 of provenance.db. Shipped: never edit this file, add the next number instead.

-- What an execution counted, as JSON {unit: amount}: {"forward":8123,"items":291}. NULL: nothing.
ALTER TABLE executions ADD COLUMN work TEXT;
