-- Child runs and calls that other workers take than the one that drives the run above them.
ALTER TABLE callslip.run
    -- By what workers know that they can take it, where that is not its agent.
    ADD COLUMN known_as text,
    -- Among how many groups of messages the runs of its tenant are divided.
    ADD COLUMN lanes integer,
    -- Where it stands in its tree, for whoever takes it.
    ADD COLUMN above text,
    -- Whether the run above it waits for its end.
    ADD COLUMN tells_parent boolean NOT NULL DEFAULT false,
    -- Whether it is no run, but one call of a tool. Such a row goes with the outcome of the call.
    ADD COLUMN is_call boolean NOT NULL DEFAULT false;

-- They take or return something else now.
DROP FUNCTION IF EXISTS callslip.claim(text, double precision, integer, text[], text[]);
DROP FUNCTION IF EXISTS callslip.take(text, double precision);
