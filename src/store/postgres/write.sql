-- $1 runs (JSON), $2 seconds of the lease of new ones; $3 to $8 the events; $9 and $10 blobs; $11 and $12 the bytes of
-- parts by their runs; $13 new tickets (JSON), $14 changed ones (JSON); $15 what was taken from inboxes.
WITH given AS MATERIALIZED (
    SELECT * FROM json_to_recordset($1::text::json) AS given (
        id text, epoch bigint, is_new boolean, expected bigint, next bigint, first bigint, holder text, agent text,
        owner text, submit_key text, protocol text, task text, parent text, parent_ticket integer, shape text,
        stop_reason text, error text, turns integer, violations integer, input_tokens bigint, output_tokens bigint, cached_tokens bigint,
        cost double precision, started_at double precision, updated_at double precision, finished_at double precision)
), fenced AS MATERIALIZED (
    -- In the order of their keys, so that two writers can't wait for each other.
    SELECT run.key, run.id FROM callslip.run JOIN given ON run.id = given.id
    WHERE run.epoch = given.epoch AND run.next = given.expected AND NOT given.is_new
    ORDER BY run.key FOR UPDATE OF run
), held AS MATERIALIZED (
    SELECT run.id FROM callslip.run
    JOIN given ON run.id = given.holder AND run.epoch = given.epoch AND given.is_new
    WHERE run.id NOT IN (SELECT id FROM given)
    ORDER BY run.key FOR SHARE OF run
), covering AS MATERIALIZED (
    -- A row that this very statement updates can't be locked once more.
    SELECT id FROM held UNION ALL SELECT id FROM fenced
), changed AS (
    UPDATE callslip.run SET
        next = given.next,
        first = CASE WHEN given.expected = 0 THEN given.first ELSE run.first END,
        agent = coalesce(given.agent, run.agent),
        owner = coalesce(given.owner, run.owner),
        protocol = coalesce(given.protocol, run.protocol),
        task = coalesce(given.task, run.task),
        parent = coalesce(given.parent, run.parent),
        parent_ticket = coalesce(given.parent_ticket, run.parent_ticket),
        shape = coalesce(given.shape, run.shape),
        given = NULL,
        stop_reason = given.stop_reason,
        error = given.error,
        turns = given.turns,
        violations = given.violations,
        input_tokens = given.input_tokens,
        output_tokens = given.output_tokens,
        cached_tokens = given.cached_tokens,
        cost = given.cost,
        started_at = given.started_at,
        updated_at = given.updated_at,
        finished_at = given.finished_at
    FROM given, fenced
    WHERE run.key = fenced.key AND run.id = given.id
    RETURNING run.key, run.id
), begun AS (
    INSERT INTO callslip.run (id, epoch, first, next, holder, agent, owner, submit_key, protocol, task, parent,
        parent_ticket, shape, stop_reason, error, turns, violations, input_tokens, output_tokens, cached_tokens, cost,
        started_at, updated_at, finished_at, msg)
    SELECT id, epoch, first, next, holder, agent, owner,
        -- One that was imported may have the key of another.
        CASE WHEN NOT EXISTS (SELECT FROM callslip.run AS other WHERE coalesce(other.owner, '') = coalesce(given.owner, '')
            AND other.agent = given.agent AND other.submit_key = given.submit_key) THEN submit_key END,
        protocol, task, parent, parent_ticket, shape, stop_reason, error, turns, violations, input_tokens, output_tokens,
        cached_tokens, cost, started_at, updated_at, finished_at,
        CASE WHEN holder IS NULL THEN callslip.send(id, 'default', '', $2, false) END
    FROM given
    WHERE is_new AND (holder IS NULL OR holder IN (SELECT id FROM covering))
    ON CONFLICT (id) DO NOTHING
    RETURNING key, id
), written AS (
    SELECT key, id FROM changed UNION ALL SELECT key, id FROM begun
), blobs AS (
    INSERT INTO callslip.blob (hash, data) SELECT hash, data FROM unnest($9::bytea[], $10::bytea[]) AS blob (hash, data)
    ON CONFLICT (hash) DO NOTHING
), used AS (
    -- One that is old might be swept at this very moment.
    UPDATE callslip.blob SET used_at = clock_timestamp()
    WHERE hash = ANY ($9::bytea[]) AND used_at < clock_timestamp() - interval '12 hours'
), events AS (
    INSERT INTO callslip.event (run, seq, at, kind, data, blob)
    SELECT written.key, event.seq, event.at, event.kind, event.data, event.blob
    FROM unnest($3::text[], $4::bigint[], $5::double precision[], $6::text[], $7::text[], $8::bytea[])
        AS event (run, seq, at, kind, data, blob)
    JOIN written ON written.id = event.run
), contents AS (
    INSERT INTO callslip.run_content (run, hash)
    SELECT DISTINCT written.key, part.hash FROM unnest($11::text[], $12::bytea[]) AS part (run, hash)
    JOIN written ON written.id = part.run
    ON CONFLICT DO NOTHING
), opened AS (
    INSERT INTO callslip.ticket (run, id, kind, tool, description, turn, call_id, opened_at, opened_seq, completed_at,
        completed_seq, outcome, arguments, text, blob, parked, attempts, approval_reason, parts, awaits_result, external,
        answer_key, untrusted)
    SELECT written.key, ticket.id, kind, tool, description, turn, call_id, opened_at, opened_seq, completed_at,
        completed_seq, outcome, arguments, text, decode(blob, 'hex'), parked, attempts, approval_reason, parts,
        awaits_result, external, answer_key, untrusted
    FROM json_to_recordset($13::text::json) AS ticket (
        run text, id integer, kind text, tool text, description text, turn integer, call_id text,
        opened_at double precision, opened_seq bigint, completed_at double precision, completed_seq bigint,
        outcome text, arguments text, text text, blob text, parked boolean, attempts integer, approval_reason text,
        parts text, awaits_result boolean, external text, answer_key text, untrusted boolean)
    JOIN written ON written.id = ticket.run
    ON CONFLICT DO NOTHING
), patched AS (
    UPDATE callslip.ticket SET
        completed_at = coalesce(ticket.completed_at, patch.completed_at),
        completed_seq = CASE WHEN ticket.outcome IS NULL THEN patch.completed_seq ELSE ticket.completed_seq END,
        outcome = coalesce(ticket.outcome, patch.outcome),
        arguments = coalesce(patch.arguments, ticket.arguments),
        parked = CASE
            WHEN patch.outcome_last AND ticket.outcome IS NULL THEN false
            ELSE coalesce(patch.parked, ticket.parked)
        END,
        attempts = coalesce(patch.attempts, ticket.attempts),
        approval_reason = coalesce(patch.approval_reason, ticket.approval_reason),
        awaits_result = CASE
            WHEN ticket.awaits_result IS NULL AND patch.external IS NULL THEN NULL
            WHEN patch.outcome_last AND ticket.outcome IS NULL THEN false
            ELSE coalesce(patch.is_free, ticket.awaits_result)
        END,
        external = coalesce(patch.external, ticket.external),
        answer_key = coalesce(patch.answer_key, ticket.answer_key),
        untrusted = ticket.untrusted OR (patch.untrusted AND ticket.outcome IS NULL)
    FROM json_to_recordset($14::text::json) AS patch (
        run text, id integer, completed_at double precision, completed_seq bigint, outcome text, outcome_last boolean,
        arguments text, parked boolean, attempts integer, approval_reason text, is_free boolean,
        external text, answer_key text, untrusted boolean)
    JOIN written ON written.id = patch.run
    WHERE ticket.run = written.key AND ticket.id = patch.id
), taken AS (
    DELETE FROM callslip.inbox USING written WHERE inbox.run = written.id AND inbox.id = ANY ($15::bigint[])
)
SELECT written.id, (
    SELECT count(pg_notify('callslip_watch_' || watch.channel, watch.run)) FROM callslip.watch
    WHERE watch.run = written.id AND watch.until > clock_timestamp())
FROM written
UNION ALL
-- Written when the same batch was sent before, and the answer was lost.
SELECT run.id, 0 FROM callslip.run JOIN given ON run.id = given.id
WHERE run.epoch = given.epoch AND run.next = given.next AND run.id NOT IN (SELECT id FROM written)
