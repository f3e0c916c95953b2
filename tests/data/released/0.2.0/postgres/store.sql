SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;
CREATE SCHEMA callslip;
CREATE FUNCTION callslip.beat(ids text[], epochs bigint[], lease double precision) RETURNS TABLE(run_id text, has_inbox boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    part record;
BEGIN
    FOR part IN SELECT run.queue, array_agg(run.msg ORDER BY run.msg) AS msgs, array_agg(run.id) AS held
        FROM unnest(ids, epochs) AS mine (id, epoch)
        JOIN callslip.run ON run.id = mine.id AND run.epoch = mine.epoch AND run.msg IS NOT NULL AND NOT run.is_later
        GROUP BY run.queue LOOP
        PERFORM pgmq.set_vt('callslip_' || part.queue, part.msgs, clock_timestamp() + make_interval(secs => lease));
        RETURN QUERY SELECT one, EXISTS (SELECT FROM callslip.inbox WHERE inbox.holder = one) FROM unnest(part.held) AS one;
    END LOOP;
END $$;
CREATE FUNCTION callslip.claim(from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean) RETURNS TABLE(run_id text, run_epoch bigint, run_first bigint, run_next bigint, run_agent text, run_given text, run_claims integer, run_over boolean, run_shape text, run_above text, given_back boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    read record;
    found_run callslip.run;
    new_epoch bigint;
BEGIN
    FOR read IN SELECT * FROM callslip.read_heads(from_queue, lease, slots, known, refused, begun_only) LOOP
        SELECT * INTO found_run FROM callslip.run WHERE id = read.id FOR UPDATE;
        IF found_run.msg IS DISTINCT FROM read.msg_id OR found_run.is_later THEN
            PERFORM pgmq.delete('callslip_' || from_queue, read.msg_id);
            CONTINUE;
        END IF;
        IF NOT coalesce(found_run.known_as, found_run.agent) = ANY (known)
            OR (found_run.next > 0 AND (found_run.agent || ' ' || coalesce(found_run.shape, '')) = ANY (refused)) THEN
            PERFORM callslip.give_back(found_run);
            RETURN QUERY SELECT found_run.id, 0::bigint, 0::bigint, 0::bigint, found_run.agent, NULL::text, 0, false,
                NULL::text, NULL::text, true;
            CONTINUE;
        END IF;
        -- `set_vt` has parts of seconds, which the reading above has not.
        PERFORM pgmq.set_vt('callslip_' || from_queue, read.msg_id, clock_timestamp() + make_interval(secs => lease));
        new_epoch := nextval('callslip.epoch');
        UPDATE callslip.run SET epoch = new_epoch,
            claims = CASE WHEN next > claimed_next + 1 THEN 1 ELSE claims + 1 END, claimed_next = next
            WHERE key = found_run.key RETURNING * INTO found_run;
        UPDATE callslip.run SET epoch = new_epoch WHERE holder = found_run.id;
        RETURN QUERY SELECT found_run.id, new_epoch, found_run.first, found_run.next, found_run.agent, found_run.given,
            found_run.claims, found_run.finished_at IS NOT NULL, found_run.shape, found_run.above, false;
    END LOOP;
END $$;
CREATE FUNCTION callslip.cover(wanted text, top text, my_epoch bigint) RETURNS TABLE(covered boolean, run_first bigint, run_next bigint)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_run callslip.run;
BEGIN
    PERFORM FROM callslip.run WHERE id = top AND epoch = my_epoch FOR UPDATE;
    IF NOT FOUND THEN
        RETURN QUERY SELECT false, 0::bigint, 0::bigint;
        RETURN;
    END IF;
    SELECT * INTO found_run FROM callslip.run WHERE id = wanted FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF found_run.msg IS NOT NULL THEN
        IF NOT found_run.is_later AND callslip.is_leased(found_run.queue, found_run.msg) THEN
            RETURN QUERY SELECT false, 0::bigint, 0::bigint;
            RETURN;
        END IF;
        PERFORM callslip.unsend(found_run.queue, found_run.is_later, found_run.msg);
    END IF;
    UPDATE callslip.run SET epoch = my_epoch, holder = top, msg = NULL, is_later = false, tells_parent = false
        WHERE key = found_run.key;
    UPDATE callslip.inbox SET holder = top WHERE run = wanted;
    RETURN QUERY SELECT true, found_run.first, found_run.next;
END $$;
CREATE FUNCTION callslip.drop_late(mine text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    DELETE FROM callslip.inbox USING callslip.run, callslip.ticket
    WHERE inbox.holder = mine AND inbox.kind IN ('outcome', 'ended') AND run.id = inbox.run
        AND ticket.run = run.key AND ticket.id = inbox.ticket AND ticket.outcome IS NOT NULL
$$;
CREATE FUNCTION callslip.due(seconds double precision, at_most integer) RETURNS SETOF text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    -- When this transaction began, as the messages that it sends say.
    began timestamptz := now();
    name text;
BEGIN
    WHILE EXISTS (SELECT FROM pgmq.q_callslip_later WHERE vt <= clock_timestamp()) LOOP
        PERFORM callslip.fall_due();
    END LOOP;
    FOR name IN SELECT queue_name FROM pgmq.meta WHERE starts_with(queue_name, 'callslip_') ORDER BY queue_name LOOP
        -- They stay visible: only their age begins anew. One that somebody takes just now is not waited for.
        RETURN QUERY EXECUTE format('UPDATE pgmq.%1$I SET vt = clock_timestamp() WHERE msg_id IN (
                SELECT waiting.msg_id FROM pgmq.%1$I AS waiting
                JOIN callslip.run ON run.id = waiting.message ->> ''run'' AND run.msg = waiting.msg_id
                    AND NOT run.is_later AND NOT run.is_call
                WHERE waiting.vt <= clock_timestamp()
                    AND (waiting.vt <= $1 - make_interval(secs => $2) OR waiting.enqueued_at >= $1)
                ORDER BY waiting.vt LIMIT $3 FOR UPDATE OF waiting SKIP LOCKED)
            RETURNING message ->> ''run''', 'q_' || name) USING began, seconds, at_most;
    END LOOP;
END $_$;
CREATE FUNCTION callslip.due_near(near text) RETURNS SETOF text
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT run.id FROM callslip.run WHERE run.msg IS NOT NULL AND NOT run.is_later AND NOT run.is_call
        AND run.key IN (
            SELECT top.key FROM callslip.run AS one JOIN callslip.run AS top ON top.id IN (one.id, one.holder)
                WHERE one.id IN (near, (SELECT parent FROM callslip.run WHERE id = near))
            UNION ALL
            SELECT child.key FROM callslip.run AS one JOIN callslip.run AS child ON child.parent = one.id
                WHERE one.id = near OR one.holder = near)
        AND NOT callslip.is_leased(run.queue, run.msg)
    ORDER BY run.key
$$;
CREATE FUNCTION callslip.end_below(mine text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    below record;
BEGIN
    FOR below IN SELECT child.id FROM callslip.run AS above
        JOIN callslip.run AS child ON child.parent = above.id
        WHERE above.id IN (SELECT id FROM callslip.run WHERE id = mine OR holder = mine)
            AND above.finished_at IS NOT NULL AND child.tells_parent AND child.finished_at IS NULL
        ORDER BY child.key LOOP
        PERFORM callslip.tell(below.id, 'cancel', NULL, NULL, NULL);
    END LOOP;
END $$;
CREATE FUNCTION callslip.end_call(mine text, my_epoch bigint, words text) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_run callslip.run;
BEGIN
    PERFORM callslip.lock_above(mine);
    SELECT * INTO found_run FROM callslip.run WHERE id = mine AND epoch = my_epoch FOR UPDATE;
    IF NOT FOUND THEN RETURN false; END IF;
    PERFORM callslip.unsend(found_run.queue, found_run.is_later, found_run.msg);
    DELETE FROM callslip.inbox WHERE holder = mine;
    DELETE FROM callslip.run WHERE key = found_run.key;
    IF words IS NOT NULL THEN PERFORM callslip.tell_above(found_run, 'outcome', words); END IF;
    RETURN true;
END $$;
CREATE FUNCTION callslip.fall_due() RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    due record;
    found_run callslip.run;
BEGIN
    FOR due IN SELECT msg_id, message ->> 'run' AS id FROM pgmq.read('callslip_later', 10, 100) LOOP
        SELECT * INTO found_run FROM callslip.run WHERE id = due.id FOR UPDATE;
        IF found_run.msg = due.msg_id AND found_run.is_later THEN
            UPDATE callslip.run SET is_later = false,
                msg = callslip.send(id, queue, lane, 0, false) WHERE key = found_run.key;
            PERFORM pg_notify('callslip_queue', found_run.queue);
        END IF;
        PERFORM pgmq.delete('callslip_later', due.msg_id);
    END LOOP;
END $$;
SET default_tablespace = '';
SET default_table_access_method = heap;
CREATE TABLE callslip.run (
    key bigint NOT NULL,
    id text NOT NULL COLLATE pg_catalog."C",
    first bigint DEFAULT 0 NOT NULL,
    next bigint DEFAULT 0 NOT NULL,
    epoch bigint NOT NULL,
    holder text COLLATE pg_catalog."C",
    agent text NOT NULL,
    protocol text DEFAULT ''::text NOT NULL,
    task text DEFAULT ''::text NOT NULL,
    parent text COLLATE pg_catalog."C",
    parent_ticket integer,
    stop_reason text,
    error text,
    turns integer DEFAULT 0 NOT NULL,
    violations integer DEFAULT 0 NOT NULL,
    input_tokens bigint DEFAULT 0 NOT NULL,
    output_tokens bigint DEFAULT 0 NOT NULL,
    cached_tokens bigint DEFAULT 0 NOT NULL,
    cost double precision DEFAULT 0 NOT NULL,
    started_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    finished_at double precision,
    queue text DEFAULT 'default'::text NOT NULL,
    msg bigint,
    is_later boolean DEFAULT false NOT NULL,
    lane text DEFAULT ''::text NOT NULL,
    tenant text,
    shape text,
    given text,
    submit_key text COLLATE pg_catalog."C",
    claims integer DEFAULT 0 NOT NULL,
    claimed_next bigint DEFAULT '-1'::integer NOT NULL,
    known_as text,
    lanes integer,
    above text,
    tells_parent boolean DEFAULT false NOT NULL,
    is_call boolean DEFAULT false NOT NULL
)
WITH (fillfactor='70');
CREATE FUNCTION callslip.give_back(given callslip.run) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    PERFORM callslip.unsend(given.queue, given.is_later, given.msg);
    UPDATE callslip.run SET is_later = true, epoch = nextval('callslip.epoch'),
        msg = callslip.send(id, queue, lane, 10, true) WHERE key = given.key;
END $$;
CREATE FUNCTION callslip.is_leased(queue text, msg bigint) RETURNS boolean
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    leased boolean;
BEGIN
    EXECUTE format('SELECT vt > clock_timestamp() FROM pgmq.%I WHERE msg_id = $1', 'q_callslip_' || queue)
        INTO leased USING msg;
    RETURN coalesce(leased, false);
END $_$;
CREATE FUNCTION callslip.leave(mine text, my_epoch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_run callslip.run;
BEGIN
    PERFORM callslip.lock_above(mine);
    SELECT * INTO found_run FROM callslip.run WHERE id = mine AND epoch = my_epoch FOR UPDATE;
    IF NOT FOUND OR found_run.msg IS NULL THEN RETURN; END IF;
    PERFORM callslip.drop_late(mine);
    IF NOT EXISTS (SELECT FROM callslip.inbox WHERE holder = mine) AND (found_run.finished_at IS NOT NULL
        -- The run that has started it goes on with it.
        OR (NOT found_run.tells_parent
            AND EXISTS (SELECT FROM callslip.run WHERE id = found_run.parent AND finished_at IS NULL))) THEN
        PERFORM callslip.unsend(found_run.queue, found_run.is_later, found_run.msg);
        UPDATE callslip.run SET epoch = nextval('callslip.epoch'), msg = NULL WHERE key = found_run.key;
        IF found_run.finished_at IS NOT NULL THEN PERFORM callslip.end_below(mine); END IF;
        IF found_run.tells_parent THEN
            PERFORM callslip.tell_above(found_run, 'ended', NULL);
        ELSE
            PERFORM callslip.wake(found_run.parent);
        END IF;
    ELSE
        PERFORM pgmq.set_vt('callslip_' || found_run.queue, found_run.msg, clock_timestamp());
        -- A call that was left may have been made: whoever takes it must know.
        UPDATE callslip.run SET epoch = nextval('callslip.epoch'),
            claims = CASE WHEN is_call THEN claims ELSE 0 END WHERE key = found_run.key;
        PERFORM pg_notify('callslip_queue', found_run.queue);
    END IF;
END $$;
CREATE FUNCTION callslip.lock_above(mine text) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT FROM callslip.run WHERE id = (
        SELECT coalesce(above.holder, above.id) FROM callslip.run
        JOIN callslip.run AS above ON above.id = run.parent WHERE run.id = mine AND run.tells_parent)
    FOR UPDATE
$$;
CREATE FUNCTION callslip.make_queue(queue text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgmq.meta WHERE queue_name = 'callslip_' || queue) THEN
        PERFORM pgmq.create('callslip_' || queue);
        -- Rows come and go all the time.
        EXECUTE format('ALTER TABLE pgmq.%I SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)',
            'q_callslip_' || queue);
    END IF;
END $$;
CREATE FUNCTION callslip.put(woken callslip.run, wanted text, what text, about integer, words text, person text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    INSERT INTO callslip.inbox (run, holder, kind, ticket, body, decided_by)
        VALUES (wanted, woken.id, what, about, words, person);
    IF woken.msg IS NULL OR woken.is_later THEN
        IF woken.is_later THEN PERFORM callslip.unsend(woken.queue, true, woken.msg); END IF;
        UPDATE callslip.run SET is_later = false, claims = 0,
            msg = callslip.send(id, queue, lane, 0, false) WHERE key = woken.key;
        PERFORM pg_notify('callslip_queue', woken.queue);
    ELSE
        PERFORM pg_notify('callslip_inbox', woken.id);
    END IF;
END $$;
CREATE FUNCTION callslip.read_heads(from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean) RETURNS TABLE(msg_id bigint, id text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
END $_$;
CREATE FUNCTION callslip.refuse(mine text, my_epoch bigint) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_run callslip.run;
BEGIN
    SELECT * INTO found_run FROM callslip.run WHERE id = mine AND epoch = my_epoch FOR UPDATE;
    IF FOUND THEN
        PERFORM callslip.give_back(found_run);
        -- This claim was not in vain: nothing was tried.
        UPDATE callslip.run SET claims = greatest(claims - 1, 0) WHERE key = found_run.key;
    END IF;
END $$;
CREATE FUNCTION callslip.rest(mine text, my_epoch bigint, delay double precision) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_run callslip.run;
BEGIN
    SELECT * INTO found_run FROM callslip.run WHERE id = mine AND epoch = my_epoch FOR UPDATE;
    IF NOT FOUND THEN RETURN 'lost'; END IF;
    PERFORM callslip.drop_late(mine);
    IF EXISTS (SELECT FROM callslip.inbox WHERE holder = mine) THEN RETURN 'inbox'; END IF;
    PERFORM callslip.unsend(found_run.queue, found_run.is_later, found_run.msg);
    UPDATE callslip.run SET epoch = nextval('callslip.epoch'), claims = 0, is_later = delay IS NOT NULL,
        msg = CASE WHEN delay IS NOT NULL THEN callslip.send(id, queue, lane, delay, true) END WHERE key = found_run.key;
    RETURN 'rests';
END $$;
CREATE FUNCTION callslip.send(id text, queue text, lane text, delay double precision, later boolean) RETURNS bigint
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT * FROM pgmq.send(
        CASE WHEN later THEN 'callslip_later' ELSE 'callslip_' || queue END,
        jsonb_build_object('run', id),
        jsonb_build_object('x-pgmq-group', CASE lane WHEN '' THEN id ELSE lane END),
        clock_timestamp() + make_interval(secs => delay))
$$;
CREATE FUNCTION callslip.spent(top text) RETURNS TABLE(input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost double precision, tickets bigint, runs bigint)
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    WITH RECURSIVE tree (id, key) AS (
        SELECT id, key FROM callslip.run WHERE id = top
        UNION ALL SELECT run.id, run.key FROM callslip.run JOIN tree ON run.parent = tree.id WHERE NOT run.is_call
    ), opened AS (
        SELECT count(*) AS tickets, count(*) FILTER (WHERE kind = 'task') AS runs
        FROM callslip.ticket JOIN tree ON ticket.run = tree.key
    )
    SELECT sum(run.input_tokens)::bigint, sum(run.output_tokens)::bigint, sum(run.cached_tokens)::bigint, sum(run.cost),
        max(opened.tickets), max(opened.runs)
    FROM callslip.run JOIN tree USING (key), opened
$$;
CREATE FUNCTION callslip.submit(new_id text, new_agent text, new_given text, new_task text, new_queue text, new_tenant text, new_key text, new_limit integer, delay double precision, backlog bigint) RETURNS TABLE(run_id text, is_new boolean)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    number bigint;
    new_lane text := '';
BEGIN
    PERFORM callslip.make_queue(new_queue);
    IF new_key IS NOT NULL THEN
        RETURN QUERY SELECT run.id, false FROM callslip.run WHERE submit_key = new_key;
        IF FOUND THEN RETURN; END IF;
    END IF;
    IF backlog IS NOT NULL AND (SELECT queue_length FROM pgmq.metrics('callslip_' || new_queue)) >= backlog THEN
        RETURN QUERY SELECT NULL::text, false;
        RETURN;
    END IF;
    INSERT INTO callslip.run (id, epoch, agent, task, given, queue, tenant, submit_key, started_at, updated_at)
        VALUES (new_id, nextval('callslip.epoch'), new_agent, new_task, new_given, new_queue, new_tenant, new_key,
            extract(epoch FROM clock_timestamp()), extract(epoch FROM clock_timestamp()))
        ON CONFLICT DO NOTHING RETURNING key INTO number;
    IF number IS NULL THEN
        -- The same moment, the same key.
        RETURN QUERY SELECT run.id, false FROM callslip.run WHERE submit_key = new_key;
        RETURN;
    END IF;
    IF new_tenant IS NOT NULL AND new_limit IS NOT NULL THEN
        new_lane := new_tenant || '/' || number % new_limit;
    END IF;
    UPDATE callslip.run SET lane = new_lane, lanes = new_limit, is_later = delay > 0,
        msg = callslip.send(new_id, new_queue, new_lane, delay, delay > 0) WHERE key = number;
    IF delay <= 0 THEN PERFORM pg_notify('callslip_queue', new_queue); END IF;
    RETURN QUERY SELECT new_id, true;
END $$;
CREATE FUNCTION callslip.submit_below(top text, my_epoch bigint, above_id text, about integer, new_id text, new_agent text, new_known_as text, new_given text, new_above text, new_task text, new_queue text, new_is_call boolean) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    top_run callslip.run;
    found_run callslip.run;
    number bigint;
    new_lane text := '';
BEGIN
    SELECT * INTO top_run FROM callslip.run WHERE id = top AND epoch = my_epoch FOR UPDATE;
    IF NOT FOUND THEN RETURN 'lost'; END IF;
    SELECT * INTO found_run FROM callslip.run WHERE id = new_id;
    IF FOUND THEN
        IF NOT found_run.tells_parent THEN RETURN 'inside'; END IF;
        IF found_run.finished_at IS NOT NULL AND found_run.msg IS NULL THEN
            -- What it told was lost with an earlier version of the run above: that it was cancelled, for example.
            PERFORM callslip.tell_above(found_run, 'ended', NULL);
        END IF;
        RETURN 'sent';
    END IF;
    -- The outcome is there, and waits in the inbox.
    IF EXISTS (SELECT FROM callslip.inbox WHERE run = above_id AND ticket = about) THEN RETURN 'sent'; END IF;
    new_queue := coalesce(new_queue, top_run.queue);
    PERFORM callslip.make_queue(new_queue);
    INSERT INTO callslip.run (id, epoch, agent, task, given, queue, tenant, parent, parent_ticket, known_as, above,
            tells_parent, is_call, lanes, started_at, updated_at)
        VALUES (new_id, nextval('callslip.epoch'), new_agent, new_task, new_given, new_queue,
            CASE WHEN NOT new_is_call THEN top_run.tenant END, above_id, about, new_known_as, new_above, true,
            new_is_call, top_run.lanes, extract(epoch FROM clock_timestamp()), extract(epoch FROM clock_timestamp()))
        RETURNING key INTO number;
    IF NOT new_is_call AND top_run.tenant IS NOT NULL AND top_run.lanes IS NOT NULL THEN
        new_lane := top_run.tenant || '/' || number % top_run.lanes;
    END IF;
    UPDATE callslip.run SET lane = new_lane, msg = callslip.send(new_id, new_queue, new_lane, 0, false)
        WHERE key = number;
    PERFORM pg_notify('callslip_queue', new_queue);
    RETURN 'sent';
END $$;
CREATE FUNCTION callslip.take(wanted text, lease double precision) RETURNS TABLE(taken boolean, run_holder text, run_epoch bigint, run_first bigint, run_next bigint, run_agent text, run_given text, run_over boolean, run_shape text, run_above text)
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    found_run callslip.run;
    top_run callslip.run;
    is_covered boolean := false;
    new_epoch bigint;
BEGIN
    -- The run whose claim covers it before the run itself, as everywhere.
    SELECT top.* INTO top_run FROM callslip.run JOIN callslip.run AS top ON top.id = run.holder WHERE run.id = wanted;
    IF FOUND THEN
        SELECT * INTO top_run FROM callslip.run WHERE id = top_run.id FOR UPDATE;
        is_covered := top_run.msg IS NOT NULL AND NOT top_run.is_later
            AND callslip.is_leased(top_run.queue, top_run.msg);
    END IF;
    SELECT * INTO found_run FROM callslip.run WHERE id = wanted AND NOT is_call FOR UPDATE;
    IF NOT FOUND THEN RETURN; END IF;
    IF is_covered THEN
        RETURN QUERY SELECT false, found_run.holder, 0::bigint, 0::bigint, 0::bigint, '', NULL::text, false, NULL::text, NULL::text;
        RETURN;
    END IF;
    IF found_run.msg IS NOT NULL AND NOT found_run.is_later AND callslip.is_leased(found_run.queue, found_run.msg) THEN
        RETURN QUERY SELECT false, NULL::text, 0::bigint, 0::bigint, 0::bigint, '', NULL::text, false, NULL::text, NULL::text;
        RETURN;
    END IF;
    IF found_run.msg IS NOT NULL THEN PERFORM callslip.unsend(found_run.queue, found_run.is_later, found_run.msg); END IF;
    new_epoch := nextval('callslip.epoch');
    -- It is driven by itself from now on, where nobody drives the run that covered it.
    UPDATE callslip.run SET epoch = new_epoch, is_later = false, claims = 0, holder = NULL,
        msg = callslip.send(id, queue, lane, lease, false) WHERE key = found_run.key;
    UPDATE callslip.run SET epoch = new_epoch WHERE holder = found_run.id;
    UPDATE callslip.inbox SET holder = wanted WHERE run = wanted;
    RETURN QUERY SELECT true, NULL::text, new_epoch, found_run.first, found_run.next, found_run.agent, found_run.given,
        found_run.finished_at IS NOT NULL, found_run.shape, found_run.above;
END $$;
CREATE FUNCTION callslip.tell(wanted text, what text, about integer, words text, person text) RETURNS text
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    told_run callslip.run;
    woken callslip.run;
BEGIN
    SELECT * INTO told_run FROM callslip.run WHERE id = wanted;
    IF NOT FOUND THEN RETURN 'no run'; END IF;
    SELECT * INTO woken FROM callslip.run WHERE id = coalesce(told_run.holder, wanted) FOR UPDATE;
    -- As it is under the lock.
    SELECT * INTO told_run FROM callslip.run WHERE id = wanted;
    IF what IN ('approve', 'deny') THEN
        IF NOT EXISTS (SELECT FROM callslip.ticket WHERE run = told_run.key AND id = about AND parked) THEN
            RETURN 'not parked';
        END IF;
        IF EXISTS (SELECT FROM callslip.inbox WHERE run = wanted AND ticket = about) THEN RETURN 'decided'; END IF;
    ELSIF what = 'cancel' AND told_run.finished_at IS NOT NULL THEN
        RETURN 'over';
    ELSIF what = 'cancel' AND woken.is_call AND NOT callslip.is_leased(woken.queue, woken.msg) THEN
        -- No worker need hear of it.
        PERFORM callslip.unsend(woken.queue, woken.is_later, woken.msg);
        DELETE FROM callslip.run WHERE key = woken.key;
        RETURN 'told';
    END IF;
    PERFORM callslip.put(woken, wanted, what, about, words, person);
    RETURN 'told';
END $$;
CREATE FUNCTION callslip.tell_above(ended callslip.run, what text, words text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    above_run callslip.run;
    woken callslip.run;
BEGIN
    SELECT * INTO above_run FROM callslip.run WHERE id = ended.parent;
    IF NOT FOUND OR above_run.finished_at IS NOT NULL THEN RETURN; END IF;
    SELECT * INTO woken FROM callslip.run WHERE id = coalesce(above_run.holder, above_run.id) FOR UPDATE;
    IF EXISTS (SELECT FROM callslip.ticket
            WHERE run = above_run.key AND id = ended.parent_ticket AND outcome IS NULL)
        AND NOT EXISTS (SELECT FROM callslip.inbox WHERE run = ended.parent AND ticket = ended.parent_ticket) THEN
        PERFORM callslip.put(woken, ended.parent, what, ended.parent_ticket, words, NULL);
    END IF;
END $$;
CREATE FUNCTION callslip.unsend(queue text, later boolean, msg bigint) RETURNS void
    LANGUAGE sql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT pgmq.delete(CASE WHEN later THEN 'callslip_later' ELSE 'callslip_' || queue END, msg)
$$;
CREATE FUNCTION callslip.wake(waiting text) RETURNS void
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    woken callslip.run;
BEGIN
    SELECT top.* INTO woken FROM callslip.run
        JOIN callslip.run AS top ON top.id = coalesce(run.holder, run.id) WHERE run.id = waiting;
    IF NOT FOUND THEN RETURN; END IF;
    SELECT * INTO woken FROM callslip.run WHERE id = woken.id FOR UPDATE;
    IF woken.finished_at IS NULL AND (woken.msg IS NULL OR woken.is_later) THEN
        IF woken.is_later THEN PERFORM callslip.unsend(woken.queue, true, woken.msg); END IF;
        UPDATE callslip.run SET is_later = false, msg = callslip.send(id, queue, lane, 0, false)
            WHERE key = woken.key;
        PERFORM pg_notify('callslip_queue', woken.queue);
    END IF;
END $$;
CREATE TABLE callslip.blob (
    hash bytea NOT NULL,
    data bytea NOT NULL,
    used_at timestamp with time zone DEFAULT clock_timestamp() NOT NULL
);
CREATE SEQUENCE callslip.epoch
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1;
CREATE TABLE callslip.event (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    kind text NOT NULL,
    data text NOT NULL,
    blob bytea
);
CREATE VIEW callslip.events AS
 SELECT run.id AS run_id,
    event.seq,
    event.at,
    event.kind,
        CASE
            WHEN (blob.data IS NULL) THEN event.data
            WHEN (event.kind = 'ticket_completed'::text) THEN regexp_replace(event.data, '"ok":null'::text, ('"ok":'::text || replace(convert_from(blob.data, 'UTF8'::name), '\'::text, '\\'::text)))
            ELSE regexp_replace(event.data, '"setup":null'::text, ('"setup":'::text || replace(convert_from(blob.data, 'UTF8'::name), '\'::text, '\\'::text)))
        END AS data
   FROM ((callslip.event
     JOIN callslip.run ON ((run.key = event.run)))
     LEFT JOIN callslip.blob ON ((blob.hash = event.blob)));
CREATE TABLE callslip.inbox (
    id bigint NOT NULL,
    run text NOT NULL COLLATE pg_catalog."C",
    holder text NOT NULL COLLATE pg_catalog."C",
    kind text NOT NULL,
    ticket integer,
    body text,
    decided_by text,
    at double precision DEFAULT EXTRACT(epoch FROM clock_timestamp()) NOT NULL
);
ALTER TABLE callslip.inbox ALTER COLUMN id ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME callslip.inbox_id_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE TABLE callslip.meta (
    one boolean DEFAULT true NOT NULL,
    version integer NOT NULL,
    CONSTRAINT meta_one_check CHECK (one)
);
CREATE TABLE callslip.run_content (
    run bigint NOT NULL,
    hash bytea NOT NULL
);
ALTER TABLE callslip.run ALTER COLUMN key ADD GENERATED ALWAYS AS IDENTITY (
    SEQUENCE NAME callslip.run_key_seq
    START WITH 1
    INCREMENT BY 1
    NO MINVALUE
    NO MAXVALUE
    CACHE 1
);
CREATE VIEW callslip.runs AS
 SELECT run.id AS run_id,
    run.agent,
    run.protocol,
    run.task,
    run.parent AS parent_run,
    ('T'::text || run.parent_ticket) AS parent_ticket,
        CASE
            WHEN (run.finished_at IS NULL) THEN 'running'::text
            ELSE 'finished'::text
        END AS status,
    run.stop_reason,
    run.error,
    run.turns,
    run.violations,
    run.input_tokens,
    run.output_tokens,
    run.cached_tokens,
    run.cost,
    run.started_at,
    run.updated_at,
    run.finished_at,
    run.queue,
    run.tenant
   FROM callslip.run
  WHERE (run.next > 0);
CREATE TABLE callslip.ticket (
    run bigint NOT NULL,
    id integer NOT NULL,
    kind text NOT NULL,
    tool text NOT NULL,
    description text NOT NULL,
    turn integer NOT NULL,
    call_id text,
    opened_at double precision NOT NULL,
    opened_seq bigint,
    completed_at double precision,
    completed_seq bigint,
    outcome text,
    arguments text,
    text text,
    blob bytea,
    parked boolean DEFAULT false NOT NULL,
    attempts integer DEFAULT 1 NOT NULL,
    approval_reason text,
    parts text
);
CREATE VIEW callslip.tickets AS
 SELECT run.id AS run_id,
    ('T'::text || ticket.id) AS ticket,
    ticket.kind,
    ticket.tool,
    ticket.description,
    COALESCE(ticket.arguments, (((opened.data)::json -> 'arguments'::text))::text) AS arguments,
    ticket.turn,
    ticket.call_id,
        CASE
            WHEN (ticket.outcome IS NULL) THEN 'IN_PROGRESS'::text
            ELSE 'COMPLETED'::text
        END AS status,
    ticket.outcome,
        CASE ticket.outcome
            WHEN 'ok'::text THEN COALESCE(convert_from(blob.data, 'UTF8'::name), ticket.text, ((((completed.data)::json -> 'outcome'::text) -> 'ok'::text))::text)
            ELSE NULL::text
        END AS result,
        CASE
            WHEN (ticket.outcome = 'cancelled'::text) THEN COALESCE(ticket.text,
            CASE (((completed.data)::json -> 'outcome'::text))::text
                WHEN '"not_begun"'::text THEN 'cancelled before it began: it had no effect'::text
                ELSE 'cancelled under way: whether it took effect is not known'::text
            END)
            WHEN (ticket.outcome <> 'ok'::text) THEN COALESCE(ticket.text, (((((completed.data)::json -> 'outcome'::text) -> ticket.outcome) -> 'message'::text))::text)
            ELSE NULL::text
        END AS error,
    ticket.opened_at,
    ticket.completed_at,
    (ticket.parked AND (NOT (EXISTS ( SELECT
           FROM callslip.inbox
          WHERE ((inbox.run = run.id) AND (inbox.ticket = ticket.id)))))) AS parked,
    ticket.attempts,
    ticket.approval_reason
   FROM ((((callslip.ticket
     JOIN callslip.run ON ((run.key = ticket.run)))
     LEFT JOIN callslip.event opened ON (((opened.run = ticket.run) AND (opened.seq = ticket.opened_seq))))
     LEFT JOIN callslip.event completed ON (((completed.run = ticket.run) AND (completed.seq = ticket.completed_seq))))
     LEFT JOIN callslip.blob ON ((blob.hash = COALESCE(ticket.blob, completed.blob))));
CREATE TABLE callslip.watch (
    run text NOT NULL COLLATE pg_catalog."C",
    channel integer NOT NULL,
    until timestamp with time zone NOT NULL
);
CREATE TABLE callslip.worker (
    id text NOT NULL,
    version text NOT NULL,
    agents text[] NOT NULL,
    queues text[] NOT NULL,
    slots integer NOT NULL,
    busy integer NOT NULL,
    taken_over bigint DEFAULT 0 NOT NULL,
    refused bigint DEFAULT 0 NOT NULL,
    seen timestamp with time zone NOT NULL
);
INSERT INTO callslip.blob VALUES ('\x3425eef61368ea27ecf0fb3beac50f18b3ff42b0505f37ff91acc0b454baaf78', '\x7b2270726f746f636f6c223a7b227469636b6574223a7b2261776169745f6c6f616473223a66616c73652c22696e6c696e655f726573756c7473223a747275652c226c69737473223a226368616e676573222c2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520636f6d706c657465207461736b732e2045766572792063616c6c206f662061206261736520746f6f6c2069732061207469636b6574202869642c206465736372697074696f6e2c2073746174757320494e5f50524f4752455353206f7220434f4d504c45544544293b20656163685c6e6d65737361676520746f20796f7520656e6473207769746820746865206c697374206f662074686f7365207468617420617265206e65772c206368616e676564206f7220696e2070726f67726573732e5c6e5c6e5772697465206e6f746573206265747765656e203c74686f75676874733e20616e64203c2f74686f75676874733e2c207468656e206f6e65204a534f4e206f626a656374206265747765656e203c6f75747075743e20616e64203c2f6f75747075743e3a5c6e7b5c22747970655c223a205c2243414c4c5c222c205c22726f7574655c223a205c222e2e2e5c222c205c227061796c6f61645c223a207b5c22617267756d656e745c223a205c2276616c75655c227d2c205c226465736372697074696f6e5c223a205c227768795c227d206f70656e732061207469636b657420616e642063616c6c732061206261736520746f6f6c5c6e7b5c22747970655c223a205c2244454c45474154455c222c205c227461736b5c223a205c222e2e2e5c227d206f70656e732061207469636b657420616e6420676976657320612070617274206f6620746865207461736b2c20746f6c6420696e2066756c6c2c20746f20616e6f74686572206167656e745c6e7b5c22747970655c223a205c2241574149545c222c205c227469636b65745f69645c223a205c2254315c227d20776169747320756e74696c20746865207469636b657420697320434f4d504c455445445c6e7b5c22747970655c223a205c224c4f41445f5449434b45545c222c205c227469636b65745f69645c223a205c2254315c227d2073686f77732074686520726573756c74206f66206120434f4d504c45544544207469636b65742074686174206973206e6f742073686f776e207965745c6e7b5c22747970655c223a205c2252455455524e5c222c205c2276616c75655c223a205c222e2e2e5c227d20656e647320746865207461736b207769746820612076616c75652c207768696368206d617920626520616e79204a534f4e5c6e5c6e4261736520746f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e61646428613a20696e742c20623a20696e7429202023204164642074776f206e756d626572732e5c6e222c226578616d706c6573223a5b7b22726f6c65223a2275736572222c22636f6e74656e74223a224578616d706c653a204164642074776f206e756d626572732e20413a2034372e20423a2034372e5c6e5c6e5469636b6574733a5c6e5b5d227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a223c74686f75676874733e5c6e4e6f207469636b6574206861732074686973207965742e20492063616c6c2061646428613a20696e742c20623a20696e74292e5c6e3c2f74686f75676874733e5c6e3c6f75747075743e5c6e7b5c22747970655c223a205c2243414c4c5c222c205c22726f7574655c223a205c226164645c222c205c227061796c6f61645c223a207b5c22615c223a2034372c205c22625c223a2034377d2c205c226465736372697074696f6e5c223a205c224164642074776f206e756d626572735c227d5c6e3c2f6f75747075743e227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a22526573756c74206f66207469636b65742054313a5c6e5c22576578636f6d626520383236345c225c6e5c6e5469636b6574733a5c6e5b7b5c2269645c223a5c2254315c222c5c226465736372697074696f6e5c223a5c224164642074776f206e756d626572735c222c5c227374617475735c223a5c22434f4d504c455445445c227d5d227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a223c74686f75676874733e5c6e5431206861732074686520726573756c743a20576578636f6d626520383236342e5c6e3c2f74686f75676874733e5c6e3c6f75747075743e5c6e7b5c22747970655c223a205c2252455455524e5c222c205c2276616c75655c223a205c22576578636f6d626520383236345c227d5c6e3c2f6f75747075743e227d5d2c22746f6f6c73223a7b22746f6f6c73223a5b7b226e616d65223a22616464222c226465736372697074696f6e223a224164642074776f206e756d626572732e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b2261223a7b2274797065223a22696e7465676572227d2c2262223a7b2274797065223a22696e7465676572227d7d2c227265717569726564223a5b2261222c2262225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c22656666656374223a226f6e6365222c22726561646f6e6c79223a747275652c2272657065617461626c65223a66616c73657d5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2264656c656761746573223a747275652c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.532141+00');
INSERT INTO callslip.blob VALUES ('\x4b4944da97e2b02a814b75af105d36947cea19ced36dec49e0d507fc04dfc8b1', '\x7b2270726f746f636f6c223a7b227469636b6574223a7b2261776169745f6c6f616473223a66616c73652c22696e6c696e655f726573756c7473223a747275652c226c69737473223a226368616e676573222c2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520636f6d706c657465207461736b732e2045766572792063616c6c206f662061206261736520746f6f6c2069732061207469636b6574202869642c206465736372697074696f6e2c2073746174757320494e5f50524f4752455353206f7220434f4d504c45544544293b20656163685c6e6d65737361676520746f20796f7520656e6473207769746820746865206c697374206f662074686f7365207468617420617265206e65772c206368616e676564206f7220696e2070726f67726573732e5c6e5c6e5772697465206e6f746573206265747765656e203c74686f75676874733e20616e64203c2f74686f75676874733e2c207468656e206f6e65204a534f4e206f626a656374206265747765656e203c6f75747075743e20616e64203c2f6f75747075743e3a5c6e7b5c22747970655c223a205c2243414c4c5c222c205c22726f7574655c223a205c222e2e2e5c222c205c227061796c6f61645c223a207b5c22617267756d656e745c223a205c2276616c75655c227d2c205c226465736372697074696f6e5c223a205c227768795c227d206f70656e732061207469636b657420616e642063616c6c732061206261736520746f6f6c5c6e7b5c22747970655c223a205c2244454c45474154455c222c205c227461736b5c223a205c222e2e2e5c227d206f70656e732061207469636b657420616e6420676976657320612070617274206f6620746865207461736b2c20746f6c6420696e2066756c6c2c20746f20616e6f74686572206167656e745c6e7b5c22747970655c223a205c2241574149545c222c205c227469636b65745f69645c223a205c2254315c227d20776169747320756e74696c20746865207469636b657420697320434f4d504c455445445c6e7b5c22747970655c223a205c224c4f41445f5449434b45545c222c205c227469636b65745f69645c223a205c2254315c227d2073686f77732074686520726573756c74206f66206120434f4d504c45544544207469636b65742074686174206973206e6f742073686f776e207965745c6e7b5c22747970655c223a205c2252455455524e5c222c205c2276616c75655c223a205c222e2e2e5c227d20656e647320746865207461736b207769746820612076616c75652c207768696368206d617920626520616e79204a534f4e5c6e5c6e4261736520746f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e5c6e222c22746f6f6c73223a7b22746f6f6c73223a5b5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2264656c656761746573223a747275652c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.554182+00');
INSERT INTO callslip.blob VALUES ('\xfbc5e486b81b70dd4c332f15f04e9145e72d5d249a61251f898c1fb9f5b933ec', '\x7b2270726f746f636f6c223a7b22636861747479223a7b2274616773223a7b227374617274223a223c746f6f6c3e222c22656e64223a223c2f746f6f6c3e227d2c22726573756c7473223a226c696e6573222c2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520616e73776572207468652075736572277320726571756573742e20496620796f75206e6565642064617461206f7220616e20616374696f6e2c207265706c792077697468206f6e6520746f6f6c20626c6f636b20616e64206e6f7468696e6720656c73653a2061204a534f4e206172726179206f665c6e63616c6c73206265747765656e203c746f6f6c3e20616e64203c2f746f6f6c3e2e20546865206e657874206d65737361676520686f6c647320746865697220726573756c74733b207468656e20616e7377657220696e20706c61696e20746578742e5c6e5c6e45616368206063616c6c5f69646020697320756e697175653b20616e20617267756d656e74205c222463616c6c5f315c22207374616e647320666f722074686520726573756c74206f6620746865206561726c6965722063616c6c206063616c6c5f31602e2055736520746f6f6c20616e645c6e706172616d65746572206e616d65732065786163746c79206173206c69737465642c207769746820657665727920726571756972656420706172616d657465723b20646f206e6f742072657065617420612063616c6c2074686174206661696c65642e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e61646428613a20696e742c20623a20696e7429202023204164642074776f206e756d626572732e5c6e222c226578616d706c6573223a5b7b22726f6c65223a2275736572222c22636f6e74656e74223a224578616d706c653a204164642074776f206e756d626572732e2028312920413a2034372e20423a2034372e2028322920413a2035302e20423a2035302e5c6e5c6e43616c6c206120746f6f6c206669727374206966206f6e65206f66207468656d2063616e20676976652074686520616e737765722e227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a223c746f6f6c3e5c6e5b7b5c2263616c6c5f69645c223a205c2263616c6c5f315c222c205c22746f6f6c5f6e616d655c223a205c226164645c222c205c22617267756d656e74735c223a207b5c22615c223a2034372c205c22625c223a2034377d7d2c207b5c2263616c6c5f69645c223a205c2263616c6c5f325c222c205c22746f6f6c5f6e616d655c223a205c226164645c222c205c22617267756d656e74735c223a207b5c22615c223a2035302c205c22625c223a2035307d7d5d5c6e3c2f746f6f6c3e227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a22544f4f4c5f455845435554494f4e5f524553554c545c6e616464202863616c6c5f31293a204c6f776d6172736820353931375c6e616464202863616c6c5f32293a204861726669656c642033303436227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a2254686520726573756c747320617265204c6f776d61727368203539313720616e64204861726669656c6420333034362e227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a224578616d706c653a204164642074776f206e756d626572732e20413a2034372e20423a2034372e5c6e5c6e43616c6c206120746f6f6c206669727374206966206f6e65206f66207468656d2063616e20676976652074686520616e737765722e227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a223c746f6f6c3e5c6e5b7b5c2263616c6c5f69645c223a205c2263616c6c5f315c222c205c22746f6f6c5f6e616d655c223a205c226164645c222c205c22617267756d656e74735c223a207b5c22615c223a2034372c205c22625c223a2034377d7d5d5c6e3c2f746f6f6c3e227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a22544f4f4c5f455845435554494f4e5f524553554c545c6e616464202863616c6c5f31293a20576578636f6d62652038323634227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a2254686520726573756c7420697320576578636f6d626520383236342e227d5d2c2272656d696e646572223a2243616c6c206120746f6f6c206669727374206966206f6e65206f66207468656d2063616e20676976652074686520616e737765722e222c22746f6f6c73223a7b22746f6f6c73223a5b7b226e616d65223a22616464222c226465736372697074696f6e223a224164642074776f206e756d626572732e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b2261223a7b2274797065223a22696e7465676572227d2c2262223a7b2274797065223a22696e7465676572227d7d2c227265717569726564223a5b2261222c2262225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c22656666656374223a226f6e6365222c22726561646f6e6c79223a747275652c2272657065617461626c65223a66616c73657d5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a747275657d', '2026-11-26 16:54:09.570192+00');
INSERT INTO callslip.blob VALUES ('\xe7d487fef34386da4e31c1551ecf15c24d5f7ebd7373407381e29cb144400f95', '\x7b2270726f746f636f6c223a7b22636861747479223a7b2274616773223a7b227374617274223a223c746f6f6c3e222c22656e64223a223c2f746f6f6c3e227d2c22726573756c7473223a226c696e6573222c2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520616e73776572207468652075736572277320726571756573742e20496620796f75206e6565642064617461206f7220616e20616374696f6e2c207265706c792077697468206f6e6520746f6f6c20626c6f636b20616e64206e6f7468696e6720656c73653a2061204a534f4e206172726179206f665c6e63616c6c73206265747765656e203c746f6f6c3e20616e64203c2f746f6f6c3e2e20546865206e657874206d65737361676520686f6c647320746865697220726573756c74733b207468656e20616e7377657220696e20706c61696e20746578742e5c6e5c6e45616368206063616c6c5f69646020697320756e697175653b20616e20617267756d656e74205c222463616c6c5f315c22207374616e647320666f722074686520726573756c74206f6620746865206561726c6965722063616c6c206063616c6c5f31602e2055736520746f6f6c20616e645c6e706172616d65746572206e616d65732065786163746c79206173206c69737465642c207769746820657665727920726571756972656420706172616d657465723b20646f206e6f742072657065617420612063616c6c2074686174206661696c65642e5c6e5c6e60737061776e5f6167656e746020676976657320612070617274206f662074686520726571756573742c20746f6c6420696e2066756c6c2c20746f20616e6f74686572206167656e74207468617420776f726b7320696e20746865206261636b67726f756e642e20546f2068617665207468655c6e726573756c74732c2063616c6c2060776169745f666f725f6167656e74736020617320746865206c6173742063616c6c206f66206120626c6f636b2c207468656e206f7220696e2061206c6174657220626c6f636b3a5c6e3c746f6f6c3e5c6e5b7b5c2263616c6c5f69645c223a205c22706c616e5c222c205c22746f6f6c5f6e616d655c223a205c22737061776e5f6167656e745c222c205c22617267756d656e74735c223a207b5c22726f6c655c223a205c22506c616e6e65725c222c205c2270726f6d70745c223a205c22506c616e2074686520747269702e5c227d7d2c5c6e207b5c2263616c6c5f69645c223a205c22776169745c222c205c22746f6f6c5f6e616d655c223a205c22776169745f666f725f6167656e74735c222c205c22617267756d656e74735c223a207b5c226167656e745f6964735c223a205b5c2224706c616e5c225d7d7d5d5c6e3c2f746f6f6c3e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e737061776e5f6167656e7428726f6c653a207374722c2070726f6d70743a207374722920202320537461727420616e6f74686572206167656e742c20776869636820776f726b7320696e20746865206261636b67726f756e642e5c6e2020726f6c653a2057686f20746865206167656e742069732c20666f72206578616d706c6520506c616e6e6572206f722052657669657765722e5c6e202070726f6d70743a205768617420697420697320746f20646f2c207769746820616c6c2074686174206974206e6565647320746f206b6e6f772e5c6e776169745f666f725f6167656e7473286167656e745f6964733a205b7374725d29202023205761697420756e74696c206167656e7473206861766520656e64656420616e642067657420746865697220726573756c74732e204974206d75737420626520746865206c6173742063616c6c206f66206120626c6f636b2e5c6e20206167656e745f6964733a205468652063616c6c5f696473206f6620746865206167656e74732c2065616368207769746820612024206265666f72652069742e5c6e222c22746f6f6c73223a7b22746f6f6c73223a5b7b226e616d65223a22737061776e5f6167656e74222c226465736372697074696f6e223a22537461727420616e6f74686572206167656e742c20776869636820776f726b7320696e20746865206261636b67726f756e642e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b22726f6c65223a7b2274797065223a22737472696e67222c226465736372697074696f6e223a2257686f20746865206167656e742069732c20666f72206578616d706c6520506c616e6e6572206f722052657669657765722e227d2c2270726f6d7074223a7b2274797065223a22737472696e67222c226d696e4c656e677468223a312c226465736372697074696f6e223a225768617420697420697320746f20646f2c207769746820616c6c2074686174206974206e6565647320746f206b6e6f772e227d7d2c227265717569726564223a5b22726f6c65222c2270726f6d7074225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c226b696e64223a22737061776e222c22656666656374223a226964656d706f74656e74222c22726561646f6e6c79223a66616c73652c2272657065617461626c65223a66616c73657d2c7b226e616d65223a22776169745f666f725f6167656e7473222c226465736372697074696f6e223a225761697420756e74696c206167656e7473206861766520656e64656420616e642067657420746865697220726573756c74732e204974206d75737420626520746865206c6173742063616c6c206f66206120626c6f636b2e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b226167656e745f696473223a7b2274797065223a226172726179222c226974656d73223a7b2274797065223a22737472696e67227d2c226d696e4974656d73223a312c226465736372697074696f6e223a225468652063616c6c5f696473206f6620746865206167656e74732c2065616368207769746820612024206265666f72652069742e227d7d2c227265717569726564223a5b226167656e745f696473225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c226b696e64223a2277616974222c22656666656374223a226964656d706f74656e74222c22726561646f6e6c79223a66616c73652c2272657065617461626c65223a747275657d5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a747275657d', '2026-11-26 16:54:09.58331+00');
INSERT INTO callslip.blob VALUES ('\xa9c1547be7a7df3c6a94fe9890d994230608ac7ecf40210354dc82bf49b0e984', '\x7b2270726f746f636f6c223a7b227265616374223a7b2272657475726e73223a7b2274797065223a22696e7465676572227d2c2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520736f6c7665207461736b7320737465702062792073746570207769746820746f6f6c732e205c6e5c6e5265706c792077697468206f6e65204a534f4e206f626a65637420616e64206e6f7468696e6720656c73652e5c6e5c6e546f2063616c6c206120746f6f6c3a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c22746f6f6c206e616d655c222c205c22617267735c223a207b5c22706172616d657465725c223a205c2276616c75655c227d7d5c6e6061726773602069732061204a534f4e206f626a656374207769746820657665727920726571756972656420706172616d657465722e20546865206e657874206d65737361676520697320746865206f62736572766174696f6e2e5c6e5c6e546f2066696e6973683a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a2034372c205c227461736b5f7375636365737366756c5c223a20747275657d5c6e6066696e616c5f616e7377657260206973204a534f4e206f6620746865207479706520696e742e5c6e53657420607461736b5f7375636365737366756c6020746f2066616c736520696620746865207461736b2063616e6e6f7420626520646f6e652e5c6e5c6e52756c65733a206f6e6520616374696f6e2061207265706c793b206e657665722060617267736020626573696465206066696e616c5f616e73776572603b20746f6f6c20616e6420706172616d65746572206e616d65732065786163746c79206173206c69737465643b206e657665725c6e72657065617420612063616c6c2074686174206661696c65642077697468207468652073616d6520617267732e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e5c6e222c22746f6f6c73223a7b22746f6f6c73223a5b5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.598647+00');
INSERT INTO callslip.blob VALUES ('\x937ddadc3a017412bf789a21da2592277f8ced6d85862bab754826e47fb55136', '\x7b2270726f746f636f6c223a7b227265616374223a7b2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520736f6c7665207461736b7320737465702062792073746570207769746820746f6f6c732e205c6e5c6e5265706c792077697468206f6e65204a534f4e206f626a65637420616e64206e6f7468696e6720656c73652e5c6e5c6e546f2063616c6c206120746f6f6c3a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c22746f6f6c206e616d655c222c205c22617267735c223a207b5c22706172616d657465725c223a205c2276616c75655c227d7d5c6e6061726773602069732061204a534f4e206f626a656374207769746820657665727920726571756972656420706172616d657465722e20546865206e657874206d65737361676520697320746865206f62736572766174696f6e2e5c6e5c6e546f2066696e6973683a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c2274686520616e737765725c222c205c227461736b5f7375636365737366756c5c223a20747275657d5c6e53657420607461736b5f7375636365737366756c6020746f2066616c736520616e64206578706c61696e20696e206066696e616c5f616e737765726020696620746865207461736b2063616e6e6f7420626520646f6e652e5c6e5c6e52756c65733a206f6e6520616374696f6e2061207265706c793b206e657665722060617267736020626573696465206066696e616c5f616e73776572603b20746f6f6c20616e6420706172616d65746572206e616d65732065786163746c79206173206c69737465643b206e657665725c6e72657065617420612063616c6c2074686174206661696c65642077697468207468652073616d6520617267732e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e6665746368286e616d653a207374722920202320466574636820612066696c652e5c6e222c226578616d706c6573223a5b7b22726f6c65223a2275736572222c22636f6e74656e74223a224578616d706c653a20466574636820612066696c652e204e616d653a204d61726c6f77652e227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a227b5c2274686f756768745c223a205c22492063616c6c206665746368286e616d653a20737472292e5c222c205c22616374696f6e5c223a205c2266657463685c222c205c22617267735c223a207b5c226e616d655c223a205c224d61726c6f77655c227d7d227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a224f62736572766174696f6e3a20576578636f6d62652038323634227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a227b5c2274686f756768745c223a205c22546865206f62736572766174696f6e206861732074686520726573756c742e5c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c22497420697320576578636f6d626520383236342e5c222c205c227461736b5f7375636365737366756c5c223a20747275657d227d5d2c22746f6f6c73223a7b22746f6f6c73223a5b7b226e616d65223a226665746368222c226465736372697074696f6e223a22466574636820612066696c652e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b226e616d65223a7b2274797065223a22737472696e67227d7d2c227265717569726564223a5b226e616d65225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c22656666656374223a226f6e6365222c22726561646f6e6c79223a747275652c2272657065617461626c65223a66616c73657d5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.607207+00');
INSERT INTO callslip.blob VALUES ('\x074425855f4b5a291b9aa2adc2f6294251151127ad11dc883296d837e3dd4df0', '\x255044462d312e34206f66207468652074657374', '2026-11-26 16:54:09.613151+00');
INSERT INTO callslip.blob VALUES ('\x468373c84ee9b383a085b4dfa692833713c2b1ff06e82ddfd5e37230cfa435be', '\x7b2270726f746f636f6c223a7b227265616374223a7b2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520736f6c7665207461736b7320737465702062792073746570207769746820746f6f6c732e205c6e5c6e5265706c792077697468206f6e65204a534f4e206f626a65637420616e64206e6f7468696e6720656c73652e5c6e5c6e546f2063616c6c206120746f6f6c3a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c22746f6f6c206e616d655c222c205c22617267735c223a207b5c22706172616d657465725c223a205c2276616c75655c227d7d5c6e6061726773602069732061204a534f4e206f626a656374207769746820657665727920726571756972656420706172616d657465722e20546865206e657874206d65737361676520697320746865206f62736572766174696f6e2e5c6e5c6e546f2066696e6973683a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c2274686520616e737765725c222c205c227461736b5f7375636365737366756c5c223a20747275657d5c6e53657420607461736b5f7375636365737366756c6020746f2066616c736520616e64206578706c61696e20696e206066696e616c5f616e737765726020696620746865207461736b2063616e6e6f7420626520646f6e652e5c6e5c6e52756c65733a206f6e6520616374696f6e2061207265706c793b206e657665722060617267736020626573696465206066696e616c5f616e73776572603b20746f6f6c20616e6420706172616d65746572206e616d65732065786163746c79206173206c69737465643b206e657665725c6e72657065617420612063616c6c2074686174206661696c65642077697468207468652073616d6520617267732e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e61646428613a20696e742c20623a20696e7429202023204164642074776f206e756d626572732e5c6e222c226578616d706c6573223a5b7b22726f6c65223a2275736572222c22636f6e74656e74223a224578616d706c653a204164642074776f206e756d626572732e20413a2034372e20423a2034372e227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a227b5c2274686f756768745c223a205c22492063616c6c2061646428613a20696e742c20623a20696e74292e5c222c205c22616374696f6e5c223a205c226164645c222c205c22617267735c223a207b5c22615c223a2034372c205c22625c223a2034377d7d227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a224f62736572766174696f6e3a20576578636f6d62652038323634227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a227b5c2274686f756768745c223a205c22546865206f62736572766174696f6e206861732074686520726573756c742e5c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c22497420697320576578636f6d626520383236342e5c222c205c227461736b5f7375636365737366756c5c223a20747275657d227d5d2c22746f6f6c73223a7b22746f6f6c73223a5b7b226e616d65223a22616464222c226465736372697074696f6e223a224164642074776f206e756d626572732e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b2261223a7b2274797065223a22696e7465676572227d2c2262223a7b2274797065223a22696e7465676572227d7d2c227265717569726564223a5b2261222c2262225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c22656666656374223a226f6e6365222c22726561646f6e6c79223a747275652c2272657065617461626c65223a66616c73657d5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.635453+00');
INSERT INTO callslip.blob VALUES ('\x45a0d7e3b0995680937901635ee3f7282d76243112e276d93b1fb41ff25bf2ea', '\x7b2270726f746f636f6c223a7b227265616374223a7b2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520736f6c7665207461736b7320737465702062792073746570207769746820746f6f6c732e205c6e5c6e5265706c792077697468206f6e65204a534f4e206f626a65637420616e64206e6f7468696e6720656c73652e5c6e5c6e546f2063616c6c206120746f6f6c3a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c22746f6f6c206e616d655c222c205c22617267735c223a207b5c22706172616d657465725c223a205c2276616c75655c227d7d5c6e6061726773602069732061204a534f4e206f626a656374207769746820657665727920726571756972656420706172616d657465722e20546865206e657874206d65737361676520697320746865206f62736572766174696f6e2e5c6e5c6e546f2066696e6973683a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c2274686520616e737765725c222c205c227461736b5f7375636365737366756c5c223a20747275657d5c6e53657420607461736b5f7375636365737366756c6020746f2066616c736520616e64206578706c61696e20696e206066696e616c5f616e737765726020696620746865207461736b2063616e6e6f7420626520646f6e652e5c6e5c6e52756c65733a206f6e6520616374696f6e2061207265706c793b206e657665722060617267736020626573696465206066696e616c5f616e73776572603b20746f6f6c20616e6420706172616d65746572206e616d65732065786163746c79206173206c69737465643b206e657665725c6e72657065617420612063616c6c2074686174206661696c65642077697468207468652073616d6520617267732e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e5c6e222c22746f6f6c73223a7b22746f6f6c73223a5b5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.641084+00');
INSERT INTO callslip.blob VALUES ('\xc529ad4a1faebd15c8afe6dea6d616b33a959a1d105e9358988072584e78af19', '\x7b2270726f746f636f6c223a7b227265616374223a7b2272656164223a7b2272657061697273223a2264656661756c74222c227468696e6b5f70726566696c6c6564223a66616c73657d7d7d2c2270726f6d7074223a22596f7520736f6c7665207461736b7320737465702062792073746570207769746820746f6f6c732e205c6e5c6e5265706c792077697468206f6e65204a534f4e206f626a65637420616e64206e6f7468696e6720656c73652e5c6e5c6e546f2063616c6c206120746f6f6c3a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c22746f6f6c206e616d655c222c205c22617267735c223a207b5c22706172616d657465725c223a205c2276616c75655c227d7d5c6e6061726773602069732061204a534f4e206f626a656374207769746820657665727920726571756972656420706172616d657465722e20546865206e657874206d65737361676520697320746865206f62736572766174696f6e2e5c6e5c6e546f2066696e6973683a5c6e7b5c2274686f756768745c223a205c227768795c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c2274686520616e737765725c222c205c227461736b5f7375636365737366756c5c223a20747275657d5c6e53657420607461736b5f7375636365737366756c6020746f2066616c736520616e64206578706c61696e20696e206066696e616c5f616e737765726020696620746865207461736b2063616e6e6f7420626520646f6e652e5c6e5c6e52756c65733a206f6e6520616374696f6e2061207265706c793b206e657665722060617267736020626573696465206066696e616c5f616e73776572603b20746f6f6c20616e6420706172616d65746572206e616d65732065786163746c79206173206c69737465643b206e657665725c6e72657065617420612063616c6c2074686174206661696c65642077697468207468652073616d6520617267732e5c6e5c6e546f6f6c733a5c6e4f6e6520746f6f6c2061206c696e652c206173206e616d6528617267756d656e7473293a20616e20617267756d656e742077697468203f206d6179206265206c656674206f75742e5c6e70617928616d6f756e743a20696e7429202023205061792e5c6e222c226578616d706c6573223a5b7b22726f6c65223a2275736572222c22636f6e74656e74223a224578616d706c653a205061792e20416d6f756e743a2034372e227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a227b5c2274686f756768745c223a205c22492063616c6c2070617928616d6f756e743a20696e74292e5c222c205c22616374696f6e5c223a205c227061795c222c205c22617267735c223a207b5c22616d6f756e745c223a2034377d7d227d2c7b22726f6c65223a2275736572222c22636f6e74656e74223a224f62736572766174696f6e3a20576578636f6d62652038323634227d2c7b22726f6c65223a22617373697374616e74222c22636f6e74656e74223a227b5c2274686f756768745c223a205c22546865206f62736572766174696f6e206861732074686520726573756c742e5c222c205c22616374696f6e5c223a205c2246494e4953485c222c205c2266696e616c5f616e737765725c223a205c22497420697320576578636f6d626520383236342e5c222c205c227461736b5f7375636365737366756c5c223a20747275657d227d5d2c22746f6f6c73223a7b22746f6f6c73223a5b7b226e616d65223a22706179222c226465736372697074696f6e223a225061792e222c22706172616d6574657273223a7b2274797065223a226f626a656374222c2270726f70657274696573223a7b22616d6f756e74223a7b2274797065223a22696e7465676572227d7d2c227265717569726564223a5b22616d6f756e74225d2c226164646974696f6e616c50726f70657274696573223a66616c73657d2c22656666656374223a226f6e6365222c22726561646f6e6c79223a66616c73652c226e656564735f617070726f76616c223a747275652c2272657065617461626c65223a66616c73657d5d7d2c226c696d697473223a7b227374657073223a392c227469636b657473223a3530302c226f70656e5f7469636b657473223a33322c227365636f6e6473223a6e756c6c2c22746f6b656e73223a6e756c6c2c22636f7374223a6e756c6c2c227265706c795f6279746573223a31363737373231362c226a736f6e5f6465707468223a3132382c226a736f6e5f646967697473223a313030302c226a736f6e5f76616c756573223a343030303030302c226a736f6e5f6b65795f6279746573223a36353533362c226a736f6e5f626c616e6b73223a3236323134342c226a736f6e5f72657061697273223a3130303030302c22726573756c745f6279746573223a33323736382c226d61785f76696f6c6174696f6e73223a332c226d61785f72657065617473223a337d2c226f6e5f6c696d6974223a22616e73776572222c226f6e5f6f70656e5f7469636b657473223a2277616974222c2263616c6c5f6669727374223a66616c73652c226561726c795f73746f70223a747275652c226561726c795f7374617274223a66616c73657d', '2026-11-26 16:54:09.647208+00');
INSERT INTO callslip.event VALUES (1, 1, 1795712049.445427, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (1, 0, 1795712049.445427, 'run_started', '{"version":7,"run_id":"7aaa582a84fea122","agent":"react","task":"Add 2 and 3","setup":null}', '\x468373c84ee9b383a085b4dfa692833713c2b1ff06e82ddfd5e37230cfa435be');
INSERT INTO callslip.event VALUES (1, 4, 1795712049.487636, 'ticket_opened', '{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"add {\"a\":2,\"b\":3}","tool":"add","arguments":{"a":2,"b":3},"needs":[]}', NULL);
INSERT INTO callslip.event VALUES (1, 3, 1795712049.487636, 'moved', '{"turn":1,"move":{"call":{"calls":[{"tool":"add","arguments":{"a":2,"b":3},"span":{"start":0,"end":65},"tool_span":{"start":27,"end":32},"arguments_span":{"start":42,"end":64}}]}}}', NULL);
INSERT INTO callslip.event VALUES (1, 2, 1795712049.487636, 'model_replied', '{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"add\", \"args\": \"{\\\"a\\\": 2, \\\"b\\\": 3}\"}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (1, 6, 1795712049.495877, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (1, 5, 1795712049.495877, 'ticket_completed', '{"ticket":1,"outcome":{"ok":5}}', NULL);
INSERT INTO callslip.event VALUES (1, 9, 1795712049.501199, 'run_finished', '{"reason":"finished","value":"5","success":true,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (1, 8, 1795712049.501199, 'moved', '{"turn":2,"move":{"finish":{"value":"5","success":true}}}', NULL);
INSERT INTO callslip.event VALUES (1, 7, 1795712049.501199, 'model_replied', '{"turn":2,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"5\", \"task_successful\": true}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (2, 1, 1795712049.5265467, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (2, 0, 1795712049.5265467, 'run_started', '{"version":7,"run_id":"e8034cc0a4c32b21","agent":"ticket","task":"Add 2 and 3","setup":null}', '\x3425eef61368ea27ecf0fb3beac50f18b3ff42b0505f37ff91acc0b454baaf78');
INSERT INTO callslip.event VALUES (2, 4, 1795712049.5329506, 'ticket_opened', '{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"d","tool":"add","arguments":{"a":2,"b":3},"needs":[]}', NULL);
INSERT INTO callslip.event VALUES (2, 3, 1795712049.5329506, 'moved', '{"turn":1,"move":{"call":{"calls":[{"tool":"/add","arguments":{"a":2,"b":3},"description":"d","span":{"start":37,"end":119},"tool_span":{"start":63,"end":69},"arguments_span":{"start":82,"end":98}}]}}}', NULL);
INSERT INTO callslip.event VALUES (2, 2, 1795712049.5329506, 'model_replied', '{"turn":1,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"CALL\", \"route\": \"/add\", \"payload\": {\"a\": 2, \"b\": 3}, \"description\": \"d\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (2, 6, 1795712049.5416944, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (2, 5, 1795712049.5416944, 'ticket_completed', '{"ticket":1,"outcome":{"ok":5}}', NULL);
INSERT INTO callslip.event VALUES (2, 9, 1795712049.5441403, 'model_asked', '{"turn":3}', NULL);
INSERT INTO callslip.event VALUES (2, 8, 1795712049.5441403, 'moved', '{"turn":2,"move":{"await":{"ticket_id":"T1"}}}', NULL);
INSERT INTO callslip.event VALUES (2, 7, 1795712049.5441403, 'model_replied', '{"turn":2,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (2, 12, 1795712049.5457635, 'model_asked', '{"turn":4}', NULL);
INSERT INTO callslip.event VALUES (2, 11, 1795712049.5457635, 'moved', '{"turn":3,"move":{"load":{"ticket_id":"T1"}}}', NULL);
INSERT INTO callslip.event VALUES (2, 10, 1795712049.5457635, 'model_replied', '{"turn":3,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"LOAD_TICKET\", \"ticket_id\": \"T1\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (2, 15, 1795712049.5470538, 'run_finished', '{"reason":"finished","value":"5","success":null,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (2, 14, 1795712049.5470538, 'moved', '{"turn":4,"move":{"finish":{"value":"5"}}}', NULL);
INSERT INTO callslip.event VALUES (2, 13, 1795712049.5470538, 'model_replied', '{"turn":4,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"5\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (3, 1, 1795712049.5526686, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (3, 0, 1795712049.5526686, 'run_started', '{"version":7,"run_id":"01be4720c3279ded","agent":"delegates","task":"Add 2 and 3","setup":null}', '\x4b4944da97e2b02a814b75af105d36947cea19ced36dec49e0d507fc04dfc8b1');
INSERT INTO callslip.event VALUES (3, 4, 1795712049.554748, 'ticket_opened', '{"ticket":1,"kind":"task","turn":1,"call":0,"call_id":null,"description":"Add 2 and 3 as well","tool":"DELEGATE","arguments":{"task":"Add 2 and 3 as well"},"needs":[]}', NULL);
INSERT INTO callslip.event VALUES (3, 3, 1795712049.554748, 'moved', '{"turn":1,"move":{"delegate":{"task":"Add 2 and 3 as well"}}}', NULL);
INSERT INTO callslip.event VALUES (3, 2, 1795712049.554748, 'model_replied', '{"turn":1,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"DELEGATE\", \"task\": \"Add 2 and 3 as well\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (4, 1, 1795712049.55645, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (4, 0, 1795712049.55645, 'run_started', '{"version":7,"run_id":"01be4720c3279ded.T1","agent":"delegates","parent":{"run_id":"01be4720c3279ded","ticket":1},"depth":1,"task":"Add 2 and 3 as well","setup":null}', '\x4b4944da97e2b02a814b75af105d36947cea19ced36dec49e0d507fc04dfc8b1');
INSERT INTO callslip.event VALUES (4, 4, 1795712049.5581765, 'run_finished', '{"reason":"finished","value":"5","success":null,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (4, 3, 1795712049.5581765, 'moved', '{"turn":1,"move":{"finish":{"value":"5"}}}', NULL);
INSERT INTO callslip.event VALUES (4, 2, 1795712049.5581765, 'model_replied', '{"turn":1,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"5\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (3, 6, 1795712049.5592496, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (3, 5, 1795712049.5592496, 'ticket_completed', '{"ticket":1,"outcome":{"ok":"5"},"spent":{"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost":0.0},"tickets":0,"runs":0}}', NULL);
INSERT INTO callslip.event VALUES (3, 9, 1795712049.5606487, 'model_asked', '{"turn":3}', NULL);
INSERT INTO callslip.event VALUES (3, 8, 1795712049.5606487, 'moved', '{"turn":2,"move":{"await":{"ticket_id":"T1"}}}', NULL);
INSERT INTO callslip.event VALUES (3, 7, 1795712049.5606487, 'model_replied', '{"turn":2,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (3, 12, 1795712049.5619628, 'run_finished', '{"reason":"finished","value":"5","success":null,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (3, 11, 1795712049.5619628, 'moved', '{"turn":3,"move":{"finish":{"value":"5"}}}', NULL);
INSERT INTO callslip.event VALUES (3, 10, 1795712049.5619628, 'model_replied', '{"turn":3,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"5\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (5, 1, 1795712049.568259, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (5, 0, 1795712049.568259, 'run_started', '{"version":7,"run_id":"3b2835dca6942382","agent":"chatty","task":"Add 2 and 3","setup":null}', '\xfbc5e486b81b70dd4c332f15f04e9145e72d5d249a61251f898c1fb9f5b933ec');
INSERT INTO callslip.event VALUES (5, 4, 1795712049.5740345, 'ticket_opened', '{"ticket":1,"turn":1,"call":0,"call_id":"c","description":"add {\"a\":2,\"b\":3}","tool":"add","arguments":{"a":2,"b":3},"needs":[]}', NULL);
INSERT INTO callslip.event VALUES (5, 3, 1795712049.5740345, 'moved', '{"turn":1,"move":{"call":{"calls":[{"call_id":"c","tool":"add","arguments":{"a":2,"b":3},"span":{"start":7,"end":74},"tool_span":{"start":37,"end":42},"arguments_span":{"start":57,"end":73}}]}}}', NULL);
INSERT INTO callslip.event VALUES (5, 2, 1795712049.5740345, 'model_replied', '{"turn":1,"text":"<tool>[{\"call_id\": \"c\", \"tool_name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}]</tool>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (5, 6, 1795712049.575789, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (5, 5, 1795712049.575789, 'ticket_completed', '{"ticket":1,"outcome":{"ok":5}}', NULL);
INSERT INTO callslip.event VALUES (5, 9, 1795712049.577055, 'run_finished', '{"reason":"finished","value":"5","success":null,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (5, 8, 1795712049.577055, 'moved', '{"turn":2,"move":{"finish":{"value":"5"}}}', NULL);
INSERT INTO callslip.event VALUES (5, 7, 1795712049.577055, 'model_replied', '{"turn":2,"text":"5","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (6, 1, 1795712049.5820053, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (6, 0, 1795712049.5820053, 'run_started', '{"version":7,"run_id":"319c6e2fbf0de04a","agent":"spawns","task":"Add 2 and 3","setup":null}', '\xe7d487fef34386da4e31c1551ecf15c24d5f7ebd7373407381e29cb144400f95');
INSERT INTO callslip.event VALUES (6, 5, 1795712049.5839205, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (6, 4, 1795712049.5839205, 'ticket_opened', '{"ticket":1,"kind":"task","turn":1,"call":0,"call_id":"s","description":"spawn_agent {\"role\":\"Worker\",\"prompt\":\"Add 2 and 3\"}","tool":"spawn_agent","arguments":{"role":"Worker","prompt":"Add 2 and 3"},"needs":[],"detached":true}', NULL);
INSERT INTO callslip.event VALUES (6, 3, 1795712049.5839205, 'moved', '{"turn":1,"move":{"call":{"calls":[{"call_id":"s","tool":"spawn_agent","arguments":{"role":"Worker","prompt":"Add 2 and 3"},"span":{"start":7,"end":109},"tool_span":{"start":37,"end":50},"arguments_span":{"start":65,"end":108}}]}}}', NULL);
INSERT INTO callslip.event VALUES (6, 2, 1795712049.5839205, 'model_replied', '{"turn":1,"text":"<tool>[{\"call_id\": \"s\", \"tool_name\": \"spawn_agent\", \"arguments\": {\"role\": \"Worker\", \"prompt\": \"Add 2 and 3\"}}]</tool>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (7, 1, 1795712049.5858479, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (7, 0, 1795712049.5858479, 'run_started', '{"version":7,"run_id":"319c6e2fbf0de04a.T1","agent":"spawns","parent":{"run_id":"319c6e2fbf0de04a","ticket":1},"depth":1,"task":"Your role: Worker\n\nAdd 2 and 3","setup":null}', '\xe7d487fef34386da4e31c1551ecf15c24d5f7ebd7373407381e29cb144400f95');
INSERT INTO callslip.event VALUES (6, 7, 1795712049.586219, 'moved', '{"turn":2,"move":{"finish":{"value":"5"}}}', NULL);
INSERT INTO callslip.event VALUES (6, 6, 1795712049.586219, 'model_replied', '{"turn":2,"text":"5","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (7, 4, 1795712049.588103, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (7, 3, 1795712049.588103, 'violated', '{"turn":1,"violation":{"code":"bad_reference","message":"expected the call_id of an agent that was spawned: got ''$s''","span":{"start":72,"end":93},"pointer":"/agent_ids/0","hint":"there is none yet: spawn_agent comes first"}}', NULL);
INSERT INTO callslip.event VALUES (7, 2, 1795712049.588103, 'model_replied', '{"turn":1,"text":"<tool>[{\"call_id\": \"wait\", \"tool_name\": \"wait_for_agents\", \"arguments\": {\"agent_ids\": [\"$s\"]}}]</tool>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (7, 7, 1795712049.589519, 'run_finished', '{"reason":"finished","value":"5","success":null,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (7, 6, 1795712049.589519, 'moved', '{"turn":2,"move":{"finish":{"value":"5"}}}', NULL);
INSERT INTO callslip.event VALUES (7, 5, 1795712049.589519, 'model_replied', '{"turn":2,"text":"5","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (6, 9, 1795712049.5906215, 'run_finished', '{"reason":"finished","value":"5","success":null,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (6, 8, 1795712049.5906215, 'ticket_completed', '{"ticket":1,"outcome":{"ok":"5"},"spent":{"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost":0.0},"tickets":0,"runs":0}}', NULL);
INSERT INTO callslip.event VALUES (8, 1, 1795712049.597156, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (8, 0, 1795712049.597156, 'run_started', '{"version":7,"run_id":"9042203ca070dac8","agent":"typed","task":"Add 2 and 3","setup":null}', '\xa9c1547be7a7df3c6a94fe9890d994230608ac7ecf40210354dc82bf49b0e984');
INSERT INTO callslip.event VALUES (8, 4, 1795712049.5993536, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (8, 3, 1795712049.5993536, 'violated', '{"turn":1,"violation":{"code":"no_action","message":"expected one JSON object with ''action'': got none","expected":"{\"thought\": \"why\", \"action\": \"tool_name\", \"args\": {\"name\": \"value\"}}","hint":"reply with the object alone, without text around it"}}', NULL);
INSERT INTO callslip.event VALUES (8, 2, 1795712049.5993536, 'model_replied', '{"turn":1,"text":"no JSON","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (8, 7, 1795712049.6008, 'run_finished', '{"reason":"finished","value":5,"success":true,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (8, 6, 1795712049.6008, 'moved', '{"turn":2,"move":{"finish":{"value":5,"success":true}}}', NULL);
INSERT INTO callslip.event VALUES (8, 5, 1795712049.6008, 'model_replied', '{"turn":2,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": 5, \"task_successful\": true}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (9, 1, 1795712049.6058168, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (9, 0, 1795712049.6058168, 'run_started', '{"version":7,"run_id":"f57e00ef83d059d8","agent":"part","task":"Add 2 and 3","setup":null}', '\x937ddadc3a017412bf789a21da2592277f8ced6d85862bab754826e47fb55136');
INSERT INTO callslip.event VALUES (9, 4, 1795712049.6100743, 'ticket_opened', '{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"fetch {\"name\":\"a.pdf\"}","tool":"fetch","arguments":{"name":"a.pdf"},"needs":[]}', NULL);
INSERT INTO callslip.event VALUES (9, 3, 1795712049.6100743, 'moved', '{"turn":1,"move":{"call":{"calls":[{"tool":"fetch","arguments":{"name":"a.pdf"},"span":{"start":0,"end":68},"tool_span":{"start":27,"end":34},"arguments_span":{"start":44,"end":67}}]}}}', NULL);
INSERT INTO callslip.event VALUES (9, 2, 1795712049.6100743, 'model_replied', '{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"fetch\", \"args\": \"{\\\"name\\\": \\\"a.pdf\\\"}\"}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (9, 6, 1795712049.6118484, 'model_asked', '{"turn":2}', NULL);
INSERT INTO callslip.event VALUES (9, 5, 1795712049.6118484, 'ticket_completed', '{"ticket":1,"outcome":{"ok":"[file application/pdf, 20 bytes, T1, a.pdf]"},"parts":[{"label":"T1","media_type":"application/pdf","name":"a.pdf","bytes":20,"sha256":"074425855f4b5a291b9aa2adc2f6294251151127ad11dc883296d837e3dd4df0"}]}', NULL);
INSERT INTO callslip.event VALUES (9, 9, 1795712049.6137362, 'run_finished', '{"reason":"finished","value":"5","success":true,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (9, 8, 1795712049.6137362, 'moved', '{"turn":2,"move":{"finish":{"value":"5","success":true}}}', NULL);
INSERT INTO callslip.event VALUES (9, 7, 1795712049.6137362, 'model_replied', '{"turn":2,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"5\", \"task_successful\": true}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (10, 9, 1795712049.623687, 'compacted', '{"start":{"version":7,"run_id":"c3e1a82b92f64bb1","agent":"compacted","task":"Add 2 and 3","setup":null},"hash":"b0d6d2378cf371447f4bc07a8a255b707cc42915c499dcf5615dce49631dcf53","sum":"1f5104564cdae8ee2873e8bb262425a0164bb579e2d50acf6bfed3f517f541a1","state":{"result_bytes":32768,"messages":[{"role":"system","content":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": \"the answer\", \"task_successful\": true}\nSet `task_successful` to false and explain in `final_answer` if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nadd(a: int, b: int)  # Add two numbers.\n"},{"role":"user","content":"Example: Add two numbers. A: 47. B: 47."},{"role":"assistant","content":"{\"thought\": \"I call add(a: int, b: int).\", \"action\": \"add\", \"args\": {\"a\": 47, \"b\": 47}}"},{"role":"user","content":"Observation: Wexcombe 8264"},{"role":"assistant","content":"{\"thought\": \"The observation has the result.\", \"action\": \"FINISH\", \"final_answer\": \"It is Wexcombe 8264.\", \"task_successful\": true}"},{"role":"user","content":"Add 2 and 3"},{"role":"assistant","content":"{\"thought\": \"t\", \"action\": \"add\", \"args\": \"{\\\"a\\\": 2, \\\"b\\\": 3}\"}"},{"role":"user","content":"Observation: 5"},{"role":"assistant","content":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"5\", \"task_successful\": true}"}],"tickets":{"tickets":[{"id":1,"description":"add {\"a\":2,\"b\":3}","tool":"add","arguments":{"a":2,"b":3},"turn":1,"call_id":null,"opened_at":1795712049.620844,"completed_at":1795712049.6223555,"outcome":{"ok":5}}],"open":0},"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost":0.0},"phase":"finished","turn":2,"started_at":1795712049.6189444,"paused":0.0,"last_at":1795712049.623687,"interrupted":"closing","midway":false,"batch_size":1,"violations":0,"violations_total":0,"last_turn":null,"limit":null,"called":true,"ending":{"reason":"finished","value":"5","success":true,"error":null},"answer":["5",true],"open_calls":{},"call_ids":{},"repetition":{"seen":{"add{\"1:a#2\"1:b#3}":{"failed":false,"last":1,"times":1}},"refused":0},"batch":{},"batch_open":0,"times":{},"loaded":[],"tellings":[]}}', '\x468373c84ee9b383a085b4dfa692833713c2b1ff06e82ddfd5e37230cfa435be');
INSERT INTO callslip.event VALUES (11, 1, 1795712049.6390934, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (11, 0, 1795712049.6390934, 'run_started', '{"version":7,"run_id":"3127f2b8cc158c51","agent":"failed","task":"Add 2 and 3","setup":null}', '\x45a0d7e3b0995680937901635ee3f7282d76243112e276d93b1fb41ff25bf2ea');
INSERT INTO callslip.event VALUES (11, 4, 1795712049.6416628, 'run_finished', '{"reason":"finished","value":"no","success":false,"error":null,"limit":null}', NULL);
INSERT INTO callslip.event VALUES (11, 3, 1795712049.6416628, 'moved', '{"turn":1,"move":{"finish":{"value":"no","success":false}}}', NULL);
INSERT INTO callslip.event VALUES (11, 2, 1795712049.6416628, 'model_replied', '{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"no\", \"task_successful\": false}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.event VALUES (12, 1, 1795712049.6458707, 'model_asked', '{"turn":1}', NULL);
INSERT INTO callslip.event VALUES (12, 0, 1795712049.6458707, 'run_started', '{"version":7,"run_id":"c6fcdcc80da4ace0","agent":"open","task":"Add 2 and 3","setup":null}', '\xc529ad4a1faebd15c8afe6dea6d616b33a959a1d105e9358988072584e78af19');
INSERT INTO callslip.event VALUES (12, 4, 1795712049.647776, 'ticket_opened', '{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"pay {\"amount\":7}","tool":"pay","arguments":{"amount":7},"needs":[],"needs_approval":true}', NULL);
INSERT INTO callslip.event VALUES (12, 3, 1795712049.647776, 'moved', '{"turn":1,"move":{"call":{"calls":[{"tool":"pay","arguments":{"amount":7},"span":{"start":0,"end":60},"tool_span":{"start":27,"end":32},"arguments_span":{"start":42,"end":59}}]}}}', NULL);
INSERT INTO callslip.event VALUES (12, 2, 1795712049.647776, 'model_replied', '{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"pay\", \"args\": \"{\\\"amount\\\": 7}\"}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}', NULL);
INSERT INTO callslip.meta VALUES (true, 2);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (8, '9042203ca070dac8', 0, 8, 70, NULL, 'typed', 'react', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 2, 1, 0, 0, 0, 0, 1795712049.597156, 1795712049.6008, 1795712049.6008, 'default', NULL, false, '', NULL, 'eb6698ba945e9324b89b42a171e68c9d97f04c4dd26393d7a0725f3bae68bd93', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (1, '7aaa582a84fea122', 0, 10, 65, NULL, 'react', 'react', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 2, 0, 0, 0, 0, 0, 1795712049.445427, 1795712049.501199, 1795712049.501199, 'default', NULL, false, '', NULL, '3f83bea5c99542098f86507327242e34a46fb084f8dd9e94fdf7e89c74a19a26', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (5, '3b2835dca6942382', 0, 10, 68, NULL, 'chatty', 'chatty', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 2, 0, 0, 0, 0, 0, 1795712049.568259, 1795712049.577055, 1795712049.577055, 'default', NULL, false, '', NULL, '68555e7a108e3e46ccf758ca3925e57c67a74a16232a29cb4a4948eae210e684', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (2, 'e8034cc0a4c32b21', 0, 16, 66, NULL, 'ticket', 'ticket', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 4, 0, 0, 0, 0, 0, 1795712049.5265467, 1795712049.5470538, 1795712049.5470538, 'default', NULL, false, '', NULL, '47481b7407adfc28a77817b1b71e3a65519e79cc8246f45b2a6840f313f5a6b2', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (4, '01be4720c3279ded.T1', 0, 5, 62, '01be4720c3279ded', 'delegates', 'ticket', 'Add 2 and 3 as well', '01be4720c3279ded', 1, 'finished', NULL, 1, 0, 0, 0, 0, 0, 1795712049.55645, 1795712049.5581765, 1795712049.5581765, 'default', NULL, false, '', NULL, '1282fb4ef2696c7b8b381c5e108285d152590dd9419c49f40ccf5f123e69644d', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (10, 'c3e1a82b92f64bb1', 9, 10, 74, NULL, 'compacted', 'react', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 2, 0, 0, 0, 0, 0, 1795712049.6189444, 1795712049.623687, 1795712049.623687, 'default', NULL, false, '', NULL, '3f83bea5c99542098f86507327242e34a46fb084f8dd9e94fdf7e89c74a19a26', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (3, '01be4720c3279ded', 0, 13, 67, NULL, 'delegates', 'ticket', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 3, 0, 0, 0, 0, 0, 1795712049.5526686, 1795712049.5619628, 1795712049.5619628, 'default', NULL, false, '', NULL, '1282fb4ef2696c7b8b381c5e108285d152590dd9419c49f40ccf5f123e69644d', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (7, '319c6e2fbf0de04a.T1', 0, 8, 60, '319c6e2fbf0de04a', 'spawns', 'chatty', 'Your role: Worker
Add 2 and 3', '319c6e2fbf0de04a', 1, 'finished', NULL, 2, 1, 0, 0, 0, 0, 1795712049.5858479, 1795712049.589519, 1795712049.589519, 'default', NULL, false, '', NULL, '39c917f420b1503c2867a67974ce2e535e0e520a7e057800d435b6985095bde1', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (6, '319c6e2fbf0de04a', 0, 10, 69, NULL, 'spawns', 'chatty', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 2, 0, 0, 0, 0, 0, 1795712049.5820053, 1795712049.5906215, 1795712049.5906215, 'default', NULL, false, '', NULL, '39c917f420b1503c2867a67974ce2e535e0e520a7e057800d435b6985095bde1', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (9, 'f57e00ef83d059d8', 0, 10, 71, NULL, 'part', 'react', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 2, 0, 0, 0, 0, 0, 1795712049.6058168, 1795712049.6137362, 1795712049.6137362, 'default', NULL, false, '', NULL, '9c907d19920432f43130f8953aa7c9a8302f21e58762eff1019f44c3e2dc1d21', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (11, '3127f2b8cc158c51', 0, 5, 75, NULL, 'failed', 'react', 'Add 2 and 3', NULL, NULL, 'finished', NULL, 1, 0, 0, 0, 0, 0, 1795712049.6390934, 1795712049.6416628, 1795712049.6416628, 'default', NULL, false, '', NULL, 'b3432a3477a1c20f78986a0712d92cf834776de753433ce7afa617de2e548448', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run OVERRIDING SYSTEM VALUE VALUES (12, 'c6fcdcc80da4ace0', 0, 5, 55, NULL, 'open', 'react', 'Add 2 and 3', NULL, NULL, NULL, NULL, 1, 0, 0, 0, 0, 0, 1795712049.6458707, 1795712049.647776, NULL, 'default', 11, false, '', NULL, '787bc4b55620b66a31546d57a09f288e6c3abcfe405734f81aebbf8662cf7aad', NULL, NULL, 0, -1, NULL, NULL, NULL, false, false);
INSERT INTO callslip.run_content VALUES (9, '\x074425855f4b5a291b9aa2adc2f6294251151127ad11dc883296d837e3dd4df0');
INSERT INTO callslip.ticket VALUES (1, 1, 'tool_call', 'add', 'add {"a":2,"b":3}', 1, NULL, 1795712049.487636, 4, 1795712049.495877, 5, 'ok', NULL, NULL, NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (2, 1, 'tool_call', 'add', 'd', 1, NULL, 1795712049.5329506, 4, 1795712049.5416944, 5, 'ok', NULL, NULL, NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (3, 1, 'task', 'DELEGATE', 'Add 2 and 3 as well', 1, NULL, 1795712049.554748, 4, 1795712049.5592496, 5, 'ok', NULL, NULL, NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (5, 1, 'tool_call', 'add', 'add {"a":2,"b":3}', 1, 'c', 1795712049.5740345, 4, 1795712049.575789, 5, 'ok', NULL, NULL, NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (6, 1, 'task', 'spawn_agent', 'spawn_agent {"role":"Worker","prompt":"Add 2 and 3"}', 1, 's', 1795712049.5839205, 4, 1795712049.5906215, 8, 'ok', NULL, NULL, NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (9, 1, 'tool_call', 'fetch', 'fetch {"name":"a.pdf"}', 1, NULL, 1795712049.6100743, 4, 1795712049.6118484, 5, 'ok', NULL, NULL, NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (10, 1, 'tool_call', 'add', 'add {"a":2,"b":3}', 1, NULL, 1795712049.620844, NULL, 1795712049.6223555, NULL, 'ok', '{"a":2,"b":3}', '5', NULL, false, 1, NULL, NULL);
INSERT INTO callslip.ticket VALUES (12, 1, 'tool_call', 'pay', 'pay {"amount":7}', 1, NULL, 1795712049.647776, 4, NULL, NULL, NULL, NULL, NULL, NULL, true, 1, NULL, NULL);
SELECT pg_catalog.setval('callslip.epoch', 75, true);
SELECT pg_catalog.setval('callslip.inbox_id_seq', 1, false);
SELECT pg_catalog.setval('callslip.run_key_seq', 12, true);
ALTER TABLE ONLY callslip.blob
    ADD CONSTRAINT blob_pkey PRIMARY KEY (hash);
ALTER TABLE ONLY callslip.event
    ADD CONSTRAINT event_pkey PRIMARY KEY (run, seq);
ALTER TABLE ONLY callslip.inbox
    ADD CONSTRAINT inbox_pkey PRIMARY KEY (id);
ALTER TABLE ONLY callslip.meta
    ADD CONSTRAINT meta_pkey PRIMARY KEY (one);
ALTER TABLE ONLY callslip.run_content
    ADD CONSTRAINT run_content_pkey PRIMARY KEY (run, hash);
ALTER TABLE ONLY callslip.run
    ADD CONSTRAINT run_id_key UNIQUE (id);
ALTER TABLE ONLY callslip.run
    ADD CONSTRAINT run_pkey PRIMARY KEY (key);
ALTER TABLE ONLY callslip.run
    ADD CONSTRAINT run_submit_key_key UNIQUE (submit_key);
ALTER TABLE ONLY callslip.ticket
    ADD CONSTRAINT ticket_pkey PRIMARY KEY (run, id);
ALTER TABLE ONLY callslip.watch
    ADD CONSTRAINT watch_pkey PRIMARY KEY (run, channel);
ALTER TABLE ONLY callslip.worker
    ADD CONSTRAINT worker_pkey PRIMARY KEY (id);
CREATE INDEX event_blob ON callslip.event USING btree (blob) WHERE (blob IS NOT NULL);
CREATE UNIQUE INDEX inbox_decision ON callslip.inbox USING btree (run, ticket) WHERE (ticket IS NOT NULL);
CREATE INDEX inbox_holder ON callslip.inbox USING btree (holder);
CREATE INDEX run_content_hash ON callslip.run_content USING btree (hash);
CREATE INDEX run_holder ON callslip.run USING btree (holder) WHERE (holder IS NOT NULL);
CREATE INDEX run_parent ON callslip.run USING btree (parent) WHERE (parent IS NOT NULL);
CREATE INDEX run_started ON callslip.run USING btree (started_at);
CREATE INDEX run_unfinished ON callslip.run USING btree (started_at) WHERE (finished_at IS NULL);
CREATE INDEX ticket_blob ON callslip.ticket USING btree (blob) WHERE (blob IS NOT NULL);
CREATE INDEX ticket_open ON callslip.ticket USING btree (opened_at) WHERE (outcome IS NULL);
CREATE INDEX ticket_opened ON callslip.ticket USING btree (opened_at);
CREATE INDEX ticket_parked ON callslip.ticket USING btree (run) WHERE parked;
GRANT USAGE ON SCHEMA callslip TO callslip_worker;
GRANT USAGE ON SCHEMA callslip TO callslip_client;
REVOKE ALL ON FUNCTION callslip.beat(ids text[], epochs bigint[], lease double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.beat(ids text[], epochs bigint[], lease double precision) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.claim(from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.claim(from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.cover(wanted text, top text, my_epoch bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.cover(wanted text, top text, my_epoch bigint) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.drop_late(mine text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.drop_late(mine text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.due(seconds double precision, at_most integer) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.due(seconds double precision, at_most integer) TO callslip_worker;
GRANT ALL ON FUNCTION callslip.due(seconds double precision, at_most integer) TO callslip_client;
REVOKE ALL ON FUNCTION callslip.due_near(near text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.due_near(near text) TO callslip_worker;
GRANT ALL ON FUNCTION callslip.due_near(near text) TO callslip_client;
REVOKE ALL ON FUNCTION callslip.end_below(mine text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.end_below(mine text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.end_call(mine text, my_epoch bigint, words text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.end_call(mine text, my_epoch bigint, words text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.fall_due() FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.fall_due() TO callslip_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.run TO callslip_worker;
GRANT SELECT ON TABLE callslip.run TO callslip_client;
REVOKE ALL ON FUNCTION callslip.give_back(given callslip.run) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.give_back(given callslip.run) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.is_leased(queue text, msg bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.is_leased(queue text, msg bigint) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.leave(mine text, my_epoch bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.leave(mine text, my_epoch bigint) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.lock_above(mine text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.lock_above(mine text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.make_queue(queue text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.make_queue(queue text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.put(woken callslip.run, wanted text, what text, about integer, words text, person text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.put(woken callslip.run, wanted text, what text, about integer, words text, person text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.read_heads(from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.read_heads(from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.refuse(mine text, my_epoch bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.refuse(mine text, my_epoch bigint) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.rest(mine text, my_epoch bigint, delay double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.rest(mine text, my_epoch bigint, delay double precision) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.send(id text, queue text, lane text, delay double precision, later boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.send(id text, queue text, lane text, delay double precision, later boolean) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.spent(top text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.spent(top text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.submit(new_id text, new_agent text, new_given text, new_task text, new_queue text, new_tenant text, new_key text, new_limit integer, delay double precision, backlog bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.submit(new_id text, new_agent text, new_given text, new_task text, new_queue text, new_tenant text, new_key text, new_limit integer, delay double precision, backlog bigint) TO callslip_worker;
GRANT ALL ON FUNCTION callslip.submit(new_id text, new_agent text, new_given text, new_task text, new_queue text, new_tenant text, new_key text, new_limit integer, delay double precision, backlog bigint) TO callslip_client;
REVOKE ALL ON FUNCTION callslip.submit_below(top text, my_epoch bigint, above_id text, about integer, new_id text, new_agent text, new_known_as text, new_given text, new_above text, new_task text, new_queue text, new_is_call boolean) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.submit_below(top text, my_epoch bigint, above_id text, about integer, new_id text, new_agent text, new_known_as text, new_given text, new_above text, new_task text, new_queue text, new_is_call boolean) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.take(wanted text, lease double precision) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.take(wanted text, lease double precision) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.tell(wanted text, what text, about integer, words text, person text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.tell(wanted text, what text, about integer, words text, person text) TO callslip_worker;
GRANT ALL ON FUNCTION callslip.tell(wanted text, what text, about integer, words text, person text) TO callslip_client;
REVOKE ALL ON FUNCTION callslip.tell_above(ended callslip.run, what text, words text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.tell_above(ended callslip.run, what text, words text) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.unsend(queue text, later boolean, msg bigint) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.unsend(queue text, later boolean, msg bigint) TO callslip_worker;
REVOKE ALL ON FUNCTION callslip.wake(waiting text) FROM PUBLIC;
GRANT ALL ON FUNCTION callslip.wake(waiting text) TO callslip_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.blob TO callslip_worker;
GRANT SELECT ON TABLE callslip.blob TO callslip_client;
GRANT USAGE ON SEQUENCE callslip.epoch TO callslip_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.event TO callslip_worker;
GRANT SELECT ON TABLE callslip.event TO callslip_client;
GRANT SELECT ON TABLE callslip.events TO callslip_worker;
GRANT SELECT ON TABLE callslip.events TO callslip_client;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.inbox TO callslip_worker;
GRANT SELECT ON TABLE callslip.inbox TO callslip_client;
GRANT USAGE ON SEQUENCE callslip.inbox_id_seq TO callslip_worker;
GRANT SELECT ON TABLE callslip.meta TO callslip_worker;
GRANT SELECT ON TABLE callslip.meta TO callslip_client;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.run_content TO callslip_worker;
GRANT SELECT ON TABLE callslip.run_content TO callslip_client;
GRANT USAGE ON SEQUENCE callslip.run_key_seq TO callslip_worker;
GRANT SELECT ON TABLE callslip.runs TO callslip_worker;
GRANT SELECT ON TABLE callslip.runs TO callslip_client;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.ticket TO callslip_worker;
GRANT SELECT ON TABLE callslip.ticket TO callslip_client;
GRANT SELECT ON TABLE callslip.tickets TO callslip_worker;
GRANT SELECT ON TABLE callslip.tickets TO callslip_client;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.watch TO callslip_worker;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.watch TO callslip_client;
GRANT SELECT,INSERT,DELETE,UPDATE ON TABLE callslip.worker TO callslip_worker;
GRANT SELECT ON TABLE callslip.worker TO callslip_client;
