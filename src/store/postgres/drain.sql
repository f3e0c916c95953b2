-- The messages that a claim leases: those that pgmq gives, or, for a worker that takes no new runs, those of begun runs
-- that it can drive. What it leaves alone it does not touch: neither does it lease it for a moment, nor give it back.
CREATE OR REPLACE FUNCTION callslip.read_heads(
    from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean)
RETURNS TABLE (msg_id bigint, id text) LANGUAGE plpgsql AS $$
BEGIN
    IF NOT begun_only THEN
        RETURN QUERY SELECT head.msg_id, head.message ->> 'run'
            FROM pgmq.read_grouped_head('callslip_' || from_queue, ceil(lease)::integer, slots) AS head;
        RETURN;
    END IF;
    -- As `read_grouped_head`: the first message of each group, so that a tenant's limit holds.
    RETURN QUERY EXECUTE format($query$
        WITH heads AS (
            SELECT min(msg_id) AS msg_id FROM pgmq.%1$I GROUP BY headers ->> 'x-pgmq-group'
        ), begun AS (
            SELECT q.msg_id FROM heads JOIN pgmq.%1$I AS q USING (msg_id)
                JOIN callslip.run ON run.id = q.message ->> 'run' AND run.msg = q.msg_id
            WHERE q.vt <= clock_timestamp() AND run.next > 0 AND NOT run.is_later AND coalesce(run.known_as, run.agent) = ANY ($3)
                AND NOT (run.agent || ' ' || coalesce(run.shape, '')) = ANY ($4)
            ORDER BY q.msg_id LIMIT $1 FOR UPDATE OF q SKIP LOCKED
        )
        UPDATE pgmq.%1$I AS q SET vt = clock_timestamp() + make_interval(secs => $2), read_ct = q.read_ct + 1,
            last_read_at = clock_timestamp()
        FROM begun WHERE q.msg_id = begun.msg_id RETURNING q.msg_id, q.message ->> 'run'
        $query$, 'q_callslip_' || from_queue) USING slots, lease, known, refused;
END $$;
