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

-- Tickets that wait for a result from outside: null for calls that the runtime makes itself.
ALTER TABLE ticket ADD COLUMN awaits_result INTEGER;
-- What is known of that result, as JSON.
ALTER TABLE ticket ADD COLUMN external TEXT;
-- By what others know a call that awaits its result: of the runs of one owner and agent, one has a key.
ALTER TABLE ticket ADD COLUMN answer_key TEXT;
CREATE INDEX ticket_answer_key ON ticket (answer_key) WHERE answer_key IS NOT NULL;
CREATE INDEX ticket_awaits_result ON ticket (opened_at) WHERE awaits_result;
-- Whether its result comes from others, or from a child run or a script that has read such a result.
ALTER TABLE ticket ADD COLUMN untrusted INTEGER NOT NULL DEFAULT 0;

DROP VIEW tickets;
CREATE VIEW tickets AS
SELECT
    run.id AS run_id,
    'T' || ticket.id AS ticket,
    ticket.kind,
    ticket.tool,
    ticket.description,
    coalesce(ticket.arguments, opened.data -> '$.arguments') AS arguments,
    ticket.turn,
    ticket.call_id,
    CASE WHEN ticket.outcome IS NULL THEN 'IN_PROGRESS' ELSE 'COMPLETED' END AS status,
    ticket.outcome,
    CASE ticket.outcome WHEN 'ok' THEN
        coalesce(blob.data, ticket.text, completed.data -> '$.outcome.ok') END AS result,
    CASE WHEN ticket.outcome = 'cancelled' THEN
            coalesce(ticket.text, completed.data ->> '$.outcome.run_cancelled.message',
                CASE completed.data ->> '$.outcome'
                WHEN 'not_begun' THEN 'cancelled before it began: it had no effect'
                ELSE 'cancelled under way: whether it took effect is not known' END)
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, completed.data ->> ('$.outcome.' || ticket.outcome || '.message')) END AS error,
    ticket.opened_at,
    ticket.completed_at,
    ticket.parked,
    ticket.attempts,
    ticket.approval_reason,
    coalesce(ticket.awaits_result, 0) AS awaits_result,
    ticket.untrusted
FROM ticket
JOIN run ON run.key = ticket.run
LEFT JOIN event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq
LEFT JOIN event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq
LEFT JOIN blob ON blob.key = coalesce(ticket.blob, completed.blob);
