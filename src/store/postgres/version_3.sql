-- Texts of the views are written as all texts are here, those in JSON too, which stands in the tables as it came: whoever reads
-- a view decodes them alike. The words of an error are no JSON, as in a file. And PostgreSQL can't take JSON with the escape of
-- character 0 apart: it gets the escape of what stands for it.
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
            coalesce(ticket.text, CASE (completion.data -> 'outcome')::text
                WHEN '"not_begun"' THEN 'cancelled before it began: it had no effect'
                ELSE 'cancelled under way: whether it took effect is not known' END)
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, completion.data -> 'outcome' -> ticket.outcome ->> 'message') END AS error,
    ticket.opened_at,
    ticket.completed_at,
    ticket.parked AND NOT EXISTS (
        SELECT FROM callslip.inbox WHERE inbox.run = run.id AND inbox.ticket = ticket.id) AS parked,
    ticket.attempts,
    ticket.approval_reason
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

CREATE OR REPLACE VIEW callslip.events AS
SELECT
    run.id AS run_id,
    event.seq,
    event.at,
    event.kind,
    replace(CASE
        WHEN blob.data IS NULL THEN event.data
        WHEN event.kind = 'ticket_completed'
            THEN regexp_replace(event.data, '"ok":null', '"ok":' || replace(convert_from(blob.data, 'UTF8'), '\', '\\'))
        ELSE regexp_replace(event.data, '"setup":null', '"setup":' || replace(convert_from(blob.data, 'UTF8'), '\', '\\'))
    END, U&'\FDD0', U&'\FDD01') AS data
FROM callslip.event
JOIN callslip.run ON run.key = event.run
LEFT JOIN callslip.blob ON blob.hash = event.blob;

-- The agents and shapes of begun runs that it can't drive, with a space between.
ALTER TABLE callslip.worker ADD COLUMN refuses text[] NOT NULL DEFAULT '{}';

-- Tenants that have had runs, and when a worker last took one of each: those take turns. Who takes runs of a tenant holds
-- its row meanwhile.
CREATE TABLE callslip.tenant (
    name text COLLATE "C" PRIMARY KEY,
    turn bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 50);

-- A lane is one of a tenant now, and says how many of its runs are driven at once: `/2/acme`, or `//acme` for any number.
-- Earlier ones were `acme/0` and `acme/1`.
UPDATE callslip.run SET
    lanes = coalesce(run.lanes, nullif(former.lanes, 0)),
    lane = '/' || coalesce(coalesce(run.lanes, nullif(former.lanes, 0))::text, '') || '/' || run.tenant
    FROM (SELECT tenant, count(DISTINCT nullif(lane, '')) AS lanes FROM callslip.run GROUP BY tenant) AS former
    WHERE run.tenant = former.tenant AND (run.lane <> '' OR run.finished_at IS NULL);
DO $$
DECLARE
    name text;
BEGIN
    FOR name IN SELECT 'q_' || queue_name FROM pgmq.meta WHERE starts_with(queue_name, 'callslip_') LOOP
        EXECUTE format('UPDATE pgmq.%I AS q SET headers = jsonb_build_object(''x-pgmq-group'', run.lane)
            FROM callslip.run WHERE run.id = q.message ->> ''run'' AND run.msg = q.msg_id AND run.lane <> ''''', name);
        EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON pgmq.%I ((headers ->> ''x-pgmq-group''), msg_id)
            WHERE starts_with(headers ->> ''x-pgmq-group'', ''/'')', left(name, 50) || '_lane', name);
    END LOOP;
END $$;
