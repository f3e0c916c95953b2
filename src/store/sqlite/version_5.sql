-- Whose data a run is, and by what its caller knows it: of the runs of one owner and agent, one has a key.
ALTER TABLE run ADD COLUMN owner TEXT;
ALTER TABLE run ADD COLUMN caller_key TEXT;
CREATE INDEX run_owner ON run (owner) WHERE owner IS NOT NULL;
CREATE UNIQUE INDEX run_caller_key ON run (coalesce(owner, ''), agent, caller_key) WHERE caller_key IS NOT NULL;

DROP VIEW runs;
CREATE VIEW runs AS
SELECT
    id AS run_id,
    agent,
    protocol,
    (SELECT coalesce(event.data ->> '$.task', event.data ->> '$.start.task')
     FROM event WHERE event.run = run.key ORDER BY event.seq LIMIT 1) AS task,
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
    owner,
    caller_key AS key
FROM run;
