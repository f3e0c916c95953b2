-- Child runs and calls of tools that any worker takes from a queue, as it takes other runs. The run above them waits for
-- their ends, which come into its inbox.

-- Locks the run that is told the end of this one, which comes before it: as everywhere, the run above first.
CREATE OR REPLACE FUNCTION callslip.lock_above(mine text) RETURNS void LANGUAGE sql AS $$
    SELECT FROM callslip.run WHERE id = (
        SELECT coalesce(above.holder, above.id) FROM callslip.run
        JOIN callslip.run AS above ON above.id = run.parent WHERE run.id = mine AND run.tells_parent)
    FOR UPDATE
$$;

-- Gives workers a child run or a call of the run `above_id`, unless they have it. `my_epoch` is that of the claim of
-- `top`, which covers that run. `lost`; `inside`: the driver of the run above drives it; `sent`.
CREATE OR REPLACE FUNCTION callslip.submit_below(
    top text, my_epoch bigint, above_id text, about integer, new_id text, new_agent text, new_known_as text,
    new_given text, new_above text, new_task text, new_queue text, new_is_call boolean)
RETURNS text LANGUAGE plpgsql AS $$
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
    INSERT INTO callslip.run (id, epoch, agent, task, given, queue, tenant, owner, parent, parent_ticket, known_as, above,
            tells_parent, is_call, lanes, started_at, updated_at)
        VALUES (new_id, nextval('callslip.epoch'), new_agent, new_task, new_given, new_queue,
            CASE WHEN NOT new_is_call THEN top_run.tenant END, top_run.owner, above_id, about, new_known_as, new_above, true,
            new_is_call, top_run.lanes, extract(epoch FROM clock_timestamp()), extract(epoch FROM clock_timestamp()))
        RETURNING key INTO number;
    IF NOT new_is_call THEN new_lane := top_run.lane; END IF;
    UPDATE callslip.run SET lane = new_lane, msg = callslip.send(new_id, new_queue, new_lane, 0, false)
        WHERE key = number;
    PERFORM pg_notify('callslip_queue', new_queue);
    RETURN 'sent';
END $$;

-- Tells the run above that a child run or a call has ended, unless it waits for that no longer.
CREATE OR REPLACE FUNCTION callslip.tell_above(ended callslip.run, what text, words text)
RETURNS void LANGUAGE plpgsql AS $$
DECLARE
    above_run callslip.run;
    woken callslip.run;
BEGIN
    SELECT * INTO above_run FROM callslip.run WHERE id = ended.parent;
    IF NOT FOUND OR above_run.finished_at IS NOT NULL THEN RETURN; END IF;
    SELECT * INTO woken FROM callslip.lock_holder(above_run.id);
    IF woken.id IS NULL THEN RETURN; END IF;
    IF EXISTS (SELECT FROM callslip.ticket
            WHERE run = above_run.key AND id = ended.parent_ticket AND outcome IS NULL)
        AND NOT EXISTS (SELECT FROM callslip.inbox WHERE run = ended.parent AND ticket = ended.parent_ticket) THEN
        PERFORM callslip.put(woken, ended.parent, what, ended.parent_ticket, words, NULL);
    END IF;
END $$;

-- The outcome of a call; null for one that was given up. Whether the call was still this worker's.
CREATE OR REPLACE FUNCTION callslip.end_call(mine text, my_epoch bigint, words text)
RETURNS boolean LANGUAGE plpgsql AS $$
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

-- What is in the inbox of a run and came too late: ends of child runs and calls that were given up.
CREATE OR REPLACE FUNCTION callslip.drop_late(mine text) RETURNS void LANGUAGE sql AS $$
    DELETE FROM callslip.inbox USING callslip.run, callslip.ticket
    WHERE inbox.holder = mine AND inbox.kind IN ('outcome', 'ended') AND run.id = inbox.run
        AND ticket.run = run.key AND ticket.id = inbox.ticket AND ticket.outcome IS NOT NULL
$$;

-- A run is over: those below it that other workers have are cancelled.
CREATE OR REPLACE FUNCTION callslip.end_below(mine text) RETURNS void LANGUAGE plpgsql AS $$
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

-- What a run and all runs below it have spent, as it stands in the database.
CREATE OR REPLACE FUNCTION callslip.spent(top text)
RETURNS TABLE (input_tokens bigint, output_tokens bigint, cached_tokens bigint, cost double precision, tickets bigint,
    runs bigint) LANGUAGE sql STABLE AS $$
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
