-- The messages that a claim leases. `x-pgmq-group` of a message is the lane of its run: `/2/acme` for a tenant of whose runs
-- two are driven at once, `//acme` for one without a limit; and the id of a run that has no tenant.

CREATE OR REPLACE FUNCTION callslip.index_lanes(queue_table text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('CREATE INDEX IF NOT EXISTS %I ON pgmq.%I ((headers ->> ''x-pgmq-group''), msg_id)
        WHERE starts_with(headers ->> ''x-pgmq-group'', ''/'')', left(queue_table, 50) || '_lane', queue_table);
END $$;

-- A run is driven no more: where its tenant has a limit, another one may be.
CREATE OR REPLACE FUNCTION callslip.make_room(driven callslip.run) RETURNS void LANGUAGE sql AS $$
    SELECT pg_notify('callslip_queue', driven.queue) WHERE driven.lane ~ '^/[0-9]'
$$;

-- A query for the messages that may be leased at $1, at most $2, of the tenants $3, or of all: `msg_id` and `tenant`.
-- First comes the tenant that has the fewest runs under way, in whatever queue; of equal ones, that whose turn is the
-- longest ago. Runs without a tenant are as those of one more. `source` gives the messages, as `q`, and `condition` says which;
-- `locking` keeps other claims from those without a tenant.
CREATE OR REPLACE FUNCTION callslip.heads_query(from_queue text, source text, condition text, locking text)
RETURNS text LANGUAGE sql STABLE AS $$
    SELECT format($query$
        WITH RECURSIVE lanes (lane) AS (
            (SELECT headers ->> 'x-pgmq-group' FROM pgmq.%1$I
                WHERE starts_with(headers ->> 'x-pgmq-group', '/') ORDER BY 1 LIMIT 1)
            UNION ALL
            SELECT (SELECT headers ->> 'x-pgmq-group' FROM pgmq.%1$I
                WHERE starts_with(headers ->> 'x-pgmq-group', '/') AND headers ->> 'x-pgmq-group' > lane
                ORDER BY 1 LIMIT 1) FROM lanes WHERE lane IS NOT NULL
        ), leased AS MATERIALIZED (
            SELECT CASE WHEN starts_with(lane, '/')
                THEN substr(lane, 2 + strpos(substr(lane, 2), '/')) ELSE '' END AS tenant, count(*) AS runs
            FROM (%2$s) AS leased GROUP BY 1
        ), first AS MATERIALIZED (
            SELECT named.*, busy, turn, one.msg_id, min(one.msg_id) OVER (PARTITION BY tenant) AS oldest
            FROM (SELECT lane, substr(lane, 2 + strpos(substr(lane, 2), '/')) AS tenant,
                nullif(split_part(lane, '/', 2), '')::bigint AS most FROM lanes WHERE lane IS NOT NULL) AS named
            LEFT JOIN leased USING (tenant) LEFT JOIN callslip.tenant ON name = tenant
            CROSS JOIN LATERAL (SELECT coalesce(runs, 0) AS busy) AS counted
            CROSS JOIN LATERAL (
                SELECT q.msg_id FROM %3$s WHERE starts_with(q.headers ->> 'x-pgmq-group', '/')
                    AND q.headers ->> 'x-pgmq-group' = named.lane AND q.vt <= $1 %4$s
                ORDER BY q.msg_id LIMIT 1) AS one
            WHERE ($3::text[] IS NULL OR tenant = ANY ($3)) AND (most IS NULL OR busy < most)
        ), chosen AS (
            SELECT *, dense_rank() OVER (ORDER BY busy, turn NULLS FIRST, oldest) AS turns FROM first
        ), waiting AS (
            -- No other tenant than the first ones can have one that is among the first messages.
            SELECT tenant, most, busy, turn, one.msg_id FROM chosen CROSS JOIN LATERAL (
                SELECT q.msg_id FROM %3$s WHERE starts_with(q.headers ->> 'x-pgmq-group', '/')
                    AND q.headers ->> 'x-pgmq-group' = chosen.lane AND q.vt <= $1 %4$s
                ORDER BY q.msg_id LIMIT least($2, most - busy)) AS one
            WHERE turns <= $2
            UNION ALL
            SELECT '', NULL, coalesce((SELECT runs FROM leased WHERE tenant = ''), 0),
                (SELECT turn FROM callslip.tenant WHERE name = ''), one.msg_id FROM (
                SELECT q.msg_id FROM %3$s WHERE NOT starts_with(q.headers ->> 'x-pgmq-group', '/')
                    AND ($3::text[] IS NULL OR '' = ANY ($3)) AND q.vt <= $1 %4$s
                ORDER BY q.msg_id LIMIT $2 %5$s) AS one
        ), placed AS (
            SELECT *, busy + row_number() OVER (PARTITION BY tenant ORDER BY msg_id) AS place FROM waiting
        )
        SELECT msg_id, tenant FROM placed WHERE most IS NULL OR place <= most
        ORDER BY place, turn NULLS FIRST, msg_id LIMIT $2
        $query$,
        'q_callslip_' || from_queue,
        (SELECT string_agg(format('SELECT headers ->> ''x-pgmq-group'' AS lane FROM pgmq.%I WHERE vt > $1',
            'q_' || queue_name), ' UNION ALL ')
            FROM pgmq.meta WHERE starts_with(queue_name, 'callslip_') AND queue_name <> 'callslip_later'),
        source, condition, locking)
$$;

-- Leases messages of runs that this worker can drive; where it takes no new ones, of begun runs, with the calls and the
-- child runs that those wait for. What it leaves alone it does not touch: neither does it lease it for a moment, nor give
-- it back. Other workers would wait for that.
CREATE OR REPLACE FUNCTION callslip.read_heads(
    from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean)
RETURNS TABLE (msg_id bigint, id text) LANGUAGE plpgsql AS $$
DECLARE
    queue_table text := 'q_callslip_' || from_queue;
    -- Each run is looked up by its id, however many there are: that keeps the order of the messages.
    source text := format('pgmq.%I AS q LEFT JOIN LATERAL (SELECT * FROM callslip.run WHERE id = q.message ->> ''run''
        OFFSET 0) AS run ON true', queue_table);
    condition text := 'AND coalesce(run.known_as, run.agent) = ANY ($4)
        AND NOT (run.next > 0 AND (run.agent || '' '' || coalesce(run.shape, '''')) = ANY ($5))';
    heads text;
    has_tenants boolean;
    tenants text[];
    taken text[];
    -- A value: an index is of no use for what the function says.
    moment timestamptz := clock_timestamp();
    head record;
BEGIN
    IF begun_only THEN
        condition := condition || ' AND (run.next > 0 OR run.tells_parent) AND run.msg = q.msg_id AND NOT run.is_later';
    ELSE
        -- The message of no run any more is taken too: it goes.
        condition := format('AND (run.msg IS DISTINCT FROM q.msg_id OR run.is_later OR (true %s))', condition);
    END IF;
    EXECUTE format('SELECT EXISTS (SELECT FROM pgmq.%I WHERE starts_with(headers ->> ''x-pgmq-group'', ''/''))',
        queue_table) INTO has_tenants;
    IF has_tenants THEN
        heads := callslip.heads_query(from_queue, source, condition, '');
        EXECUTE format('SELECT array_agg(DISTINCT tenant) FROM (%s) AS head', heads)
            INTO tenants USING moment, slots, NULL::text[], known, refused;
        -- Whoever has no tenant now takes none: room made since then is announced, and is for a claim that locks.
        IF tenants IS NULL THEN
            RETURN;
        END IF;
        -- One claim at a time for each tenant: it counts what the one before it has leased.
        INSERT INTO callslip.tenant SELECT one FROM unnest(tenants) AS one ORDER BY one COLLATE "C" ON CONFLICT DO NOTHING;
        PERFORM FROM callslip.tenant WHERE name = ANY (tenants) AND name <> '' ORDER BY name FOR UPDATE;
        heads := callslip.heads_query(from_queue, source, condition, 'FOR UPDATE OF q SKIP LOCKED');
        moment := clock_timestamp();
    ELSE
        heads := format('SELECT q.msg_id, '''' AS tenant FROM %s WHERE q.vt <= $1
            AND $3::text[] IS NULL %s ORDER BY q.msg_id LIMIT $2 FOR UPDATE OF q SKIP LOCKED', source, condition);
    END IF;
    FOR head IN EXECUTE format($query$
        WITH head AS MATERIALIZED (%2$s), free AS MATERIALIZED (
            SELECT q.msg_id, head.tenant FROM pgmq.%1$I AS q JOIN head USING (msg_id)
            WHERE q.vt <= $1 FOR UPDATE OF q SKIP LOCKED
        )
        UPDATE pgmq.%1$I AS q SET vt = clock_timestamp() + make_interval(secs => $6), read_ct = q.read_ct + 1,
            last_read_at = clock_timestamp()
        FROM free WHERE q.msg_id = free.msg_id RETURNING q.msg_id, q.message ->> 'run' AS id, free.tenant
        $query$, queue_table, heads) USING moment, slots, tenants, known, refused, lease
    LOOP
        taken := taken || head.tenant;
        msg_id := head.msg_id;
        id := head.id;
        RETURN NEXT;
    END LOOP;
    IF has_tenants THEN
        UPDATE callslip.tenant SET turn = nextval('callslip.epoch') WHERE name IN (
            SELECT name FROM callslip.tenant WHERE name = ANY (taken) FOR UPDATE SKIP LOCKED);
    END IF;
END $$;

-- Names of tenants of which there is no run.
CREATE OR REPLACE FUNCTION callslip.forget_tenants() RETURNS void LANGUAGE sql AS $$
    DELETE FROM callslip.tenant WHERE name <> '' AND NOT EXISTS (SELECT FROM callslip.run WHERE tenant = name)
$$;
