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
    nullif(protocol, '') AS protocol,
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
WHERE next > 0 OR (given IS NOT NULL AND NOT is_call);

-- Tickets that wait for a result from outside, null for calls that the runtime makes itself; and what is known of that result.
ALTER TABLE callslip.ticket ADD COLUMN awaits_result boolean, ADD COLUMN external text;
-- By what others know a call that awaits its result: of the runs of one owner and agent, one has a key.
ALTER TABLE callslip.ticket ADD COLUMN answer_key text COLLATE "C";
CREATE INDEX ticket_answer_key ON callslip.ticket (answer_key) WHERE answer_key IS NOT NULL;
CREATE INDEX ticket_awaits_result ON callslip.ticket (run) WHERE awaits_result;
-- Why a worker has given runs back that it is offered again, by their ids.
ALTER TABLE callslip.worker ADD COLUMN misfits jsonb NOT NULL DEFAULT '{}';
CREATE INDEX inbox_cancel ON callslip.inbox (run) WHERE kind = 'cancel';
-- Whether its result comes from others, or from a child run or a script that has read such a result.
ALTER TABLE callslip.ticket ADD COLUMN untrusted boolean NOT NULL DEFAULT false;

-- It has one more parameter now.
DROP FUNCTION IF EXISTS callslip.give_back(callslip.run);

CREATE OR REPLACE VIEW callslip.tickets AS
SELECT
    run.id AS run_id,
    'T' || ticket.id AS ticket,
    ticket.kind,
    ticket.tool,
    ticket.description,
    coalesce(replace(ticket.arguments, U&'\FDD0', U&'\FDD01'),
        replace((opening.data -> 'arguments')::text, '\uFDD00', '\u0000')) AS arguments,
    ticket.turn,
    ticket.call_id,
    CASE WHEN ticket.outcome IS NULL THEN 'IN_PROGRESS' ELSE 'COMPLETED' END AS status,
    ticket.outcome,
    CASE ticket.outcome WHEN 'ok' THEN
        coalesce(replace(convert_from(blob.data, 'UTF8'), U&'\FDD0', U&'\FDD01'), ticket.text,
            replace((completion.data -> 'outcome' -> 'ok')::text, '\uFDD00', '\u0000'))
    END AS result,
    CASE WHEN ticket.outcome = 'cancelled' THEN
            coalesce(ticket.text, completion.data -> 'outcome' -> 'run_cancelled' ->> 'message',
                CASE (completion.data -> 'outcome')::text
                WHEN '"not_begun"' THEN 'cancelled before it began: it had no effect'
                ELSE 'cancelled under way: whether it took effect is not known' END)
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, completion.data -> 'outcome' -> ticket.outcome ->> 'message') END AS error,
    ticket.opened_at,
    ticket.completed_at,
    ticket.parked AND NOT EXISTS (
        SELECT FROM callslip.inbox WHERE inbox.run = run.id AND inbox.ticket = ticket.id
            OR inbox.kind = 'cancel' AND (inbox.run = run.id OR starts_with(run.id, inbox.run || '.'))) AS parked,
    ticket.attempts,
    ticket.approval_reason,
    ticket.awaits_result IS TRUE AND NOT EXISTS (
        SELECT FROM callslip.inbox WHERE inbox.run = run.id AND inbox.ticket = ticket.id
            OR inbox.kind = 'cancel' AND (inbox.run = run.id OR starts_with(run.id, inbox.run || '.'))) AS awaits_result,
    ticket.untrusted
FROM callslip.ticket
JOIN callslip.run ON run.key = ticket.run
LEFT JOIN callslip.event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq
LEFT JOIN callslip.event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq
LEFT JOIN callslip.blob ON blob.hash = coalesce(ticket.blob, completed.blob)
CROSS JOIN LATERAL (SELECT CASE WHEN strpos(json, '\u0000') = 0 THEN json ELSE
        regexp_replace(json, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\uFDD00', 'g') END::json AS data
    FROM replace(opened.data, U&'\FDD0', U&'\FDD01') AS json) AS opening
CROSS JOIN LATERAL (SELECT CASE WHEN strpos(json, '\u0000') = 0 THEN json ELSE
        regexp_replace(json, '(?<!\\)((?:\\\\)*)\\u0000', '\1\\uFDD00', 'g') END::json AS data
    FROM replace(completed.data, U&'\FDD0', U&'\FDD01') AS json) AS completion;
