-- How often a call was tried.
ALTER TABLE ticket ADD COLUMN attempts INTEGER NOT NULL DEFAULT 1;
-- Why tickets need approval.
ALTER TABLE ticket ADD COLUMN approval_reason TEXT;

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
            coalesce(ticket.text, CASE completed.data ->> '$.outcome'
                WHEN 'not_begun' THEN 'cancelled before it began: it had no effect'
                ELSE 'cancelled under way: whether it took effect is not known' END)
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, completed.data ->> ('$.outcome.' || ticket.outcome || '.message')) END AS error,
    ticket.opened_at,
    ticket.completed_at,
    ticket.parked,
    ticket.attempts,
    ticket.approval_reason
FROM ticket
JOIN run ON run.key = ticket.run
LEFT JOIN event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq
LEFT JOIN event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq
LEFT JOIN blob ON blob.key = coalesce(ticket.blob, completed.blob);
