-- Whose data a run is, and by what its caller knows it: of the runs of one owner and agent, one has a key. Before, a key was
-- one for all of them, and a tenant's runs were its own.
ALTER TABLE callslip.run ADD COLUMN owner text;
UPDATE callslip.run SET owner = tenant WHERE tenant IS NOT NULL;
ALTER TABLE callslip.run DROP CONSTRAINT run_submit_key_key;
CREATE INDEX run_owner ON callslip.run (owner) WHERE owner IS NOT NULL;
CREATE UNIQUE INDEX run_submit_key ON callslip.run (coalesce(owner, ''), agent, submit_key) WHERE submit_key IS NOT NULL;

CREATE OR REPLACE VIEW callslip.runs AS
SELECT
    id AS run_id,
    agent,
    protocol,
    task,
    parent AS parent_run,
    'T' || parent_ticket AS parent_ticket,
    CASE WHEN finished_at IS NULL THEN 'running' ELSE 'finished' END AS status,
    stop_reason,
    error,
    turns,
    violations,
    input_tokens,
    output_tokens,
    cached_tokens,
    cost,
    started_at,
    updated_at,
    finished_at,
    queue,
    tenant,
    owner,
    submit_key AS key
FROM callslip.run
WHERE next > 0;
