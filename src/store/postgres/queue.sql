-- The only code that names pgmq. One rule: a run has at most one message, and a message means that there is something
-- to do. `run.msg` and the message change in one transaction, under the lock of the run's row.

-- Sends the message of a run: to its queue, or to the one for what comes later.
CREATE OR REPLACE FUNCTION callslip.send(id text, queue text, lane text, delay double precision, later boolean)
RETURNS bigint LANGUAGE sql AS $$
    SELECT * FROM pgmq.send(
        CASE WHEN later THEN 'callslip_later' ELSE 'callslip_' || queue END,
        jsonb_build_object('run', id),
        jsonb_build_object('x-pgmq-group', CASE lane WHEN '' THEN id ELSE lane END),
        clock_timestamp() + make_interval(secs => delay))
$$;

CREATE OR REPLACE FUNCTION callslip.unsend(queue text, later boolean, msg bigint)
RETURNS void LANGUAGE sql AS $$
    SELECT pgmq.delete(CASE WHEN later THEN 'callslip_later' ELSE 'callslip_' || queue END, msg)
$$;

CREATE OR REPLACE FUNCTION callslip.make_queue(queue text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pgmq.meta WHERE queue_name = 'callslip_' || queue) THEN
        PERFORM pgmq.create('callslip_' || queue);
        -- Rows come and go all the time.
        EXECUTE format('ALTER TABLE pgmq.%I SET (fillfactor = 70, autovacuum_vacuum_scale_factor = 0.01)',
            'q_callslip_' || queue);
        PERFORM callslip.index_lanes('q_callslip_' || queue);
    END IF;
END $$;

-- A run that has only its key: whoever has begun it has written nothing of it.
CREATE OR REPLACE FUNCTION callslip.is_key_alone(one callslip.run) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT one.next = 0 AND one.given IS NULL AND NOT one.is_call
$$;

CREATE OR REPLACE FUNCTION callslip.free_key(one callslip.run) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM callslip.unsend(one.queue, one.is_later, one.msg);
    DELETE FROM callslip.inbox WHERE run = one.id;
    DELETE FROM callslip.run WHERE key = one.key;
END $$;

-- The run that has a key. Where whoever has begun it with nothing else is gone, the key is free.
CREATE OR REPLACE FUNCTION callslip.run_with(its_agent text, its_owner text, its_key text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    found_run callslip.run;
BEGIN
    SELECT * INTO found_run FROM callslip.run
        WHERE coalesce(owner, '') = coalesce(its_owner, '') AND agent = its_agent AND submit_key = its_key FOR UPDATE;
    IF FOUND AND callslip.is_key_alone(found_run) AND NOT callslip.is_leased(found_run.queue, found_run.msg) THEN
        PERFORM callslip.free_key(found_run);
        RETURN NULL;
    END IF;
    RETURN found_run.id;
END $$;

-- A new run of whoever calls, leased, unless another one has its key: the run that has it, and the epoch if that is new.
CREATE OR REPLACE FUNCTION callslip.begin_with(
    new_id text, new_agent text, new_owner text, new_key text, lease double precision)
RETURNS TABLE (run_id text, run_epoch bigint) LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
    epoch_drawn bigint := nextval('callslip.epoch');
    present text;
BEGIN
    LOOP
        present := callslip.run_with(new_agent, new_owner, new_key);
        IF present IS NOT NULL THEN
            RETURN QUERY SELECT present, NULL::bigint;
            RETURN;
        END IF;
        INSERT INTO callslip.run (id, epoch, agent, owner, submit_key, started_at, updated_at)
            VALUES (new_id, epoch_drawn, new_agent, new_owner, new_key, extract(epoch FROM clock_timestamp()),
                extract(epoch FROM clock_timestamp()))
            ON CONFLICT DO NOTHING RETURNING key INTO number;
        EXIT WHEN number IS NOT NULL;
        -- Otherwise somebody else has begun the run of this key, and the next round finds it.
        IF EXISTS (SELECT FROM callslip.run WHERE id = new_id) THEN
            RAISE unique_violation USING MESSAGE = format('expected a new id of a run: got %s, which there is', new_id);
        END IF;
    END LOOP;
    UPDATE callslip.run SET msg = callslip.send(new_id, 'default', '', lease, false) WHERE key = number;
    RETURN QUERY SELECT new_id, epoch_drawn;
END $$;

-- A new run, with a message. The same key gives the same run. Without room it says so: `busy`.
CREATE OR REPLACE FUNCTION callslip.submit(
    new_id text, new_agent text, new_given text, new_task text, new_queue text, new_tenant text, new_owner text,
    new_key text, new_limit integer, delay double precision, backlog bigint)
RETURNS TABLE (run_id text, is_new boolean) LANGUAGE plpgsql AS $$
DECLARE
    number bigint;
    new_lane text := '';
BEGIN
    PERFORM callslip.make_queue(new_queue);
    IF new_key IS NOT NULL THEN
        RETURN QUERY SELECT present, false FROM callslip.run_with(new_agent, new_owner, new_key) AS present
            WHERE present IS NOT NULL;
        IF FOUND THEN RETURN; END IF;
    END IF;
    IF backlog IS NOT NULL AND (SELECT queue_length FROM pgmq.metrics('callslip_' || new_queue)) >= backlog THEN
        RETURN QUERY SELECT NULL::text, false;
        RETURN;
    END IF;
    INSERT INTO callslip.run (id, epoch, agent, task, given, queue, tenant, owner, submit_key, started_at,
            updated_at)
        VALUES (new_id, nextval('callslip.epoch'), new_agent, new_task, new_given, new_queue, new_tenant, new_owner,
            new_key, extract(epoch FROM clock_timestamp()), extract(epoch FROM clock_timestamp()))
        ON CONFLICT DO NOTHING RETURNING key INTO number;
    IF number IS NULL THEN
        -- The same moment, the same key.
        RETURN QUERY SELECT callslip.run_with(new_agent, new_owner, new_key), false;
        RETURN;
    END IF;
    IF new_tenant IS NOT NULL THEN
        new_lane := '/' || coalesce(new_limit::text, '') || '/' || new_tenant;
    END IF;
    UPDATE callslip.run SET lane = new_lane, lanes = new_limit, is_later = delay > 0,
        msg = callslip.send(new_id, new_queue, new_lane, delay, delay > 0) WHERE key = number;
    IF delay <= 0 THEN PERFORM pg_notify('callslip_queue', new_queue); END IF;
    RETURN QUERY SELECT new_id, true;
END $$;

-- By processes of the version before, which run on: a tenant's runs are its own.
CREATE OR REPLACE FUNCTION callslip.submit(
    new_id text, new_agent text, new_given text, new_task text, new_queue text, new_tenant text, new_key text,
    new_limit integer, delay double precision, backlog bigint)
RETURNS TABLE (run_id text, is_new boolean) LANGUAGE sql AS $$
    SELECT * FROM callslip.submit(
        new_id, new_agent, new_given, new_task, new_queue, new_tenant, new_tenant, new_key, new_limit, delay, backlog)
$$;

-- What is due now goes to the queue of its run.
CREATE OR REPLACE FUNCTION callslip.fall_due() RETURNS void LANGUAGE plpgsql AS $$
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

-- Leases runs of these agents, and calls of these tools, from a queue; with `begun_only` no new ones. `refused` has
-- "agent shape" of begun runs that this worker can't drive.
CREATE OR REPLACE FUNCTION callslip.claim(
    from_queue text, lease double precision, slots integer, known text[], refused text[], begun_only boolean)
RETURNS TABLE (run_id text, run_epoch bigint, run_first bigint, run_next bigint, run_agent text, run_given text,
    run_claims integer, run_over boolean, run_shape text, run_above text, given_back boolean) LANGUAGE plpgsql AS $$
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
        IF callslip.is_key_alone(found_run) THEN
            PERFORM callslip.free_key(found_run);
            CONTINUE;
        END IF;
        IF NOT coalesce(found_run.known_as, found_run.agent) = ANY (known)
            OR (found_run.next > 0 AND (found_run.agent || ' ' || coalesce(found_run.shape, '')) = ANY (refused)) THEN
            PERFORM callslip.give_back(found_run, 10);
            RETURN QUERY SELECT found_run.id, 0::bigint, 0::bigint, 0::bigint, found_run.agent, NULL::text, 0, false,
                NULL::text, NULL::text, true;
            CONTINUE;
        END IF;
        -- The reading above has no parts of seconds. Each change of a message is a row more for vacuum.
        IF lease <> ceil(lease) THEN
            PERFORM pgmq.set_vt('callslip_' || from_queue, read.msg_id, clock_timestamp() + make_interval(secs => lease));
        END IF;
        new_epoch := nextval('callslip.epoch');
        UPDATE callslip.run SET epoch = new_epoch,
            claims = CASE WHEN next > claimed_next + 1 THEN 1 ELSE claims + 1 END, claimed_next = next
            WHERE key = found_run.key RETURNING * INTO found_run;
        UPDATE callslip.run SET epoch = new_epoch WHERE holder = found_run.id;
        RETURN QUERY SELECT found_run.id, new_epoch, found_run.first, found_run.next, found_run.agent, found_run.given,
            found_run.claims, found_run.finished_at IS NOT NULL, found_run.shape, found_run.above, false;
    END LOOP;
END $$;

-- A run that this worker can't drive: another one may, after so many seconds. Not in its queue, where it would block its lane.
CREATE OR REPLACE FUNCTION callslip.give_back(given callslip.run, delay double precision)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    PERFORM callslip.unsend(given.queue, given.is_later, given.msg);
    UPDATE callslip.run SET is_later = true, epoch = nextval('callslip.epoch'),
        msg = callslip.send(id, queue, lane, delay, true) WHERE key = given.key;
END $$;

-- The same by who holds it.
CREATE OR REPLACE FUNCTION callslip.refuse(mine text, my_epoch bigint, delay double precision)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found_run callslip.run;
BEGIN
    SELECT * INTO found_run FROM callslip.run WHERE id = mine AND epoch = my_epoch FOR UPDATE;
    IF FOUND THEN
        PERFORM callslip.give_back(found_run, delay);
        -- This claim was not in vain: nothing was tried.
        UPDATE callslip.run SET claims = greatest(claims - 1, 0) WHERE key = found_run.key;
    END IF;
END $$;

-- Workers of version 0.2.0 call this one.
CREATE OR REPLACE FUNCTION callslip.refuse(mine text, my_epoch bigint) RETURNS void LANGUAGE sql AS $$
    SELECT callslip.refuse(mine, my_epoch, 10)
$$;

-- Whether a message is held by a driver, until its lease ends.
CREATE OR REPLACE FUNCTION callslip.is_leased(queue text, msg bigint) RETURNS boolean LANGUAGE plpgsql AS $$
DECLARE
    leased boolean;
BEGIN
    EXECUTE format('SELECT vt > clock_timestamp() FROM pgmq.%I WHERE msg_id = $1', 'q_callslip_' || queue)
        INTO leased USING msg;
    RETURN coalesce(leased, false);
END $$;

-- Takes one run that nobody drives, by its name. `taken` is null where its time to begin has not come, false where it is
-- driven. No row: there is no such run.
CREATE OR REPLACE FUNCTION callslip.take(wanted text, lease double precision)
RETURNS TABLE (taken boolean, run_holder text, run_epoch bigint, run_first bigint, run_next bigint, run_agent text,
    run_given text, run_over boolean, run_shape text, run_above text) LANGUAGE plpgsql AS $$
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
    IF found_run.is_later AND found_run.next = 0 AND callslip.is_leased('later', found_run.msg) THEN
        RETURN QUERY SELECT NULL::boolean, NULL::text, 0::bigint, 0::bigint, 0::bigint, '', NULL::text, false, NULL::text, NULL::text;
        RETURN;
    END IF;
    IF callslip.is_key_alone(found_run) THEN
        PERFORM callslip.free_key(found_run);
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

-- Puts a run under the claim of another one, whose driver drives it too. No row: there is no such run.
CREATE OR REPLACE FUNCTION callslip.cover(wanted text, top text, my_epoch bigint)
RETURNS TABLE (covered boolean, run_first bigint, run_next bigint) LANGUAGE plpgsql AS $$
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

-- Lengthens the leases of runs. Says which are still held with their epochs, and which have an inbox.
CREATE OR REPLACE FUNCTION callslip.beat(ids text[], epochs bigint[], lease double precision)
RETURNS TABLE (run_id text, has_inbox boolean) LANGUAGE plpgsql AS $$
DECLARE
    part record;
BEGIN
    -- Under the locks of their rows: whoever leaves a run meanwhile ends its lease after this.
    FOR part IN WITH held AS MATERIALIZED (
            SELECT run.id, run.queue, run.msg FROM unnest(ids, epochs) AS mine (id, epoch)
            JOIN callslip.run ON run.id = mine.id AND run.epoch = mine.epoch AND run.msg IS NOT NULL AND NOT run.is_later
            ORDER BY run.key FOR NO KEY UPDATE OF run)
        SELECT queue, array_agg(msg ORDER BY msg) AS msgs, array_agg(id) AS ids FROM held GROUP BY queue LOOP
        PERFORM pgmq.set_vt('callslip_' || part.queue, part.msgs, clock_timestamp() + make_interval(secs => lease));
        RETURN QUERY SELECT one, EXISTS (SELECT FROM callslip.inbox WHERE inbox.holder = one) FROM unnest(part.ids) AS one;
    END LOOP;
END $$;

-- A run that waits for the end of another one has something to do.
CREATE OR REPLACE FUNCTION callslip.wake(waiting text) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    woken callslip.run;
BEGIN
    SELECT * INTO woken FROM callslip.lock_holder(waiting);
    IF woken.id IS NULL THEN RETURN; END IF;
    IF woken.finished_at IS NULL AND (woken.msg IS NULL OR woken.is_later) THEN
        IF woken.is_later THEN PERFORM callslip.unsend(woken.queue, true, woken.msg); END IF;
        UPDATE callslip.run SET is_later = false, msg = callslip.send(id, queue, lane, 0, false)
            WHERE key = woken.key;
        PERFORM pg_notify('callslip_queue', woken.queue);
    END IF;
END $$;

-- Of a run and of those around it, the ones that have something to do and are driven by nobody: itself, the run that
-- drives it, its parent, and those that it has started.
CREATE OR REPLACE FUNCTION callslip.due_near(near text) RETURNS SETOF text LANGUAGE sql AS $$
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

-- For engines that drive runs themselves: what a crash has made them miss. Runs that have had something to do for so many
-- seconds and are driven by nobody, at most so many of each queue, and those whose time has come now. Each is named
-- again after as many seconds.
CREATE OR REPLACE FUNCTION callslip.due(seconds double precision, at_most integer)
RETURNS SETOF text LANGUAGE plpgsql AS $$
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
END $$;

-- Ends the work on a run: there is nothing to do before somebody tells it something, or before a delay. `rests`, or
-- `inbox` where something was told meanwhile, or `lost`.
CREATE OR REPLACE FUNCTION callslip.rest(mine text, my_epoch bigint, delay double precision)
RETURNS text LANGUAGE plpgsql AS $$
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
    PERFORM callslip.make_room(found_run);
    RETURN 'rests';
END $$;

-- Leaves a run as it is: another worker goes on with it at once. One that is over has nothing more to do.
CREATE OR REPLACE FUNCTION callslip.leave(mine text, my_epoch bigint) RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    found_run callslip.run;
BEGIN
    PERFORM callslip.lock_above(mine);
    SELECT * INTO found_run FROM callslip.run WHERE id = mine AND epoch = my_epoch FOR UPDATE;
    IF NOT FOUND OR found_run.msg IS NULL THEN RETURN; END IF;
    IF callslip.is_key_alone(found_run) THEN
        PERFORM callslip.free_key(found_run);
        RETURN;
    END IF;
    PERFORM callslip.drop_late(mine);
    IF NOT EXISTS (SELECT FROM callslip.inbox WHERE holder = mine) AND (found_run.finished_at IS NOT NULL
        -- The run that has started it goes on with it.
        OR (NOT found_run.tells_parent
            AND EXISTS (SELECT FROM callslip.run WHERE id = found_run.parent AND finished_at IS NULL))) THEN
        PERFORM callslip.unsend(found_run.queue, found_run.is_later, found_run.msg);
        UPDATE callslip.run SET epoch = nextval('callslip.epoch'), msg = NULL WHERE key = found_run.key;
        PERFORM callslip.make_room(found_run);
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

-- Puts something into the inbox of a run, and wakes the run whose row this is, under its lock.
CREATE OR REPLACE FUNCTION callslip.put(
    woken callslip.run, wanted text, what text, about integer, words text, person text)
RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO callslip.inbox (run, holder, kind, ticket, body, decided_by)
        VALUES (wanted, woken.id, what, about, words, person);
    -- A message is no reason to begin before the time that was asked for.
    IF woken.msg IS NULL OR (woken.is_later AND (woken.next > 0 OR what = 'cancel')) THEN
        IF woken.is_later THEN PERFORM callslip.unsend(woken.queue, true, woken.msg); END IF;
        UPDATE callslip.run SET is_later = false, claims = 0,
            msg = callslip.send(id, queue, lane, 0, false) WHERE key = woken.key;
        PERFORM pg_notify('callslip_queue', woken.queue);
    ELSE
        PERFORM pg_notify('callslip_inbox', woken.id);
    END IF;
END $$;

-- Locks the run whose driver drives this one: itself, or the run whose claim covers it. All null if there is none.
CREATE OR REPLACE FUNCTION callslip.lock_holder(wanted text) RETURNS callslip.run LANGUAGE plpgsql AS $$
DECLARE
    name text;
    now_name text;
    found_run callslip.run;
BEGIN
    SELECT coalesce(holder, id) INTO name FROM callslip.run WHERE id = wanted;
    LOOP
        SELECT * INTO found_run FROM callslip.run WHERE id = name FOR UPDATE;
        -- As it is under the lock: somebody may have taken the run by itself meanwhile.
        SELECT coalesce(holder, id) INTO now_name FROM callslip.run WHERE id = wanted;
        IF now_name IS NOT DISTINCT FROM name THEN RETURN found_run; END IF;
        name := now_name;
    END LOOP;
END $$;

-- Whether a run, or one above it, was cancelled, though its driver has not read that yet.
CREATE OR REPLACE FUNCTION callslip.is_cancelled(wanted text) RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT EXISTS (SELECT FROM callslip.inbox
        WHERE kind = 'cancel' AND (run = wanted OR starts_with(wanted, run || '.')))
$$;

-- Tells a run something: it stands in its log before its driver does anything else. `told`, or why not.
CREATE OR REPLACE FUNCTION callslip.tell(wanted text, what text, about integer, words text, person text)
RETURNS text LANGUAGE plpgsql AS $$
DECLARE
    told_run callslip.run;
    woken callslip.run;
BEGIN
    -- Who may tell may not make up what a call has led to.
    IF what NOT IN ('say', 'approve', 'deny', 'answer', 'cancel', 'resume') THEN
        RAISE EXCEPTION 'expected say, approve, deny, answer, cancel or resume: got %', what;
    END IF;
    SELECT * INTO woken FROM callslip.lock_holder(wanted);
    SELECT * INTO told_run FROM callslip.run WHERE id = wanted;
    IF NOT FOUND OR woken.id IS NULL THEN RETURN 'no run'; END IF;
    IF what = 'say' AND told_run.finished_at IS NOT NULL AND told_run.holder IS NOT NULL THEN
        -- The run above it has its result, and drives it no more: the message waits for whoever resumes it.
        UPDATE callslip.run SET holder = NULL WHERE key = told_run.key;
        INSERT INTO callslip.inbox (run, holder, kind, ticket, body, decided_by)
            VALUES (wanted, wanted, what, about, words, person);
        RETURN 'told';
    END IF;
    IF what IN ('approve', 'deny', 'answer') THEN
        IF callslip.is_cancelled(wanted) THEN RETURN 'cancelled'; END IF;
        IF NOT EXISTS (SELECT FROM callslip.ticket WHERE run = told_run.key AND id = about
            AND CASE WHEN what = 'answer' THEN awaits_result ELSE parked END) THEN
            RETURN 'not parked';
        END IF;
        IF EXISTS (SELECT FROM callslip.inbox WHERE run = wanted AND ticket = about) THEN RETURN 'decided'; END IF;
    ELSIF what = 'cancel' AND told_run.finished_at IS NOT NULL THEN
        RETURN 'over';
    ELSIF what = 'resume' AND (told_run.stop_reason IS DISTINCT FROM 'model_error'
        OR EXISTS (SELECT FROM callslip.inbox WHERE run = wanted AND kind IN ('say', 'resume'))) THEN
        -- It has ended for good, or somebody has seen to it already.
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
