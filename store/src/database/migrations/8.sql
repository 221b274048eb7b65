-- Format 8 of provenance.db. Shipped: never edit this file, add the next number instead.

-- Who signed the result, if it was taken from a remote: the public key. NULL: it was executed for this store.
ALTER TABLE executions ADD COLUMN signer TEXT;
