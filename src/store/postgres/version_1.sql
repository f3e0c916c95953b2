-- The tables are the store's own and may change from version to version; the views below are for everyone.
-- Texts have no character 0 here, which PostgreSQL can't keep: `text.rs` writes it in another way.

CREATE SEQUENCE callslip.epoch;

-- A run: what its events add up to, who may write to it, and whether there is something to do.
CREATE TABLE callslip.run (
    key bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    id text COLLATE "C" NOT NULL UNIQUE,
    -- Its log: the position of its first event, and of its next one; 0 for a run that has not begun.
    first bigint NOT NULL DEFAULT 0,
    next bigint NOT NULL DEFAULT 0,
    -- The fence: only who holds the present epoch writes. Another one with each claim.
    epoch bigint NOT NULL,
    -- The run whose claim covers this one, because its driver drives both.
    holder text COLLATE "C",
    agent text NOT NULL,
    protocol text NOT NULL DEFAULT '',
    task text NOT NULL DEFAULT '',
    parent text COLLATE "C",
    parent_ticket integer,
    stop_reason text,
    error text,
    turns integer NOT NULL DEFAULT 0,
    violations integer NOT NULL DEFAULT 0,
    input_tokens bigint NOT NULL DEFAULT 0,
    output_tokens bigint NOT NULL DEFAULT 0,
    cached_tokens bigint NOT NULL DEFAULT 0,
    cost double precision NOT NULL DEFAULT 0,
    started_at double precision NOT NULL,
    updated_at double precision NOT NULL,
    finished_at double precision,
    -- Its queue, its message there and the group of its messages. Without a message it rests.
    queue text NOT NULL DEFAULT 'default',
    msg bigint,
    is_later boolean NOT NULL DEFAULT false,
    lane text NOT NULL DEFAULT '',
    tenant text,
    -- Of its protocol and tools.
    shape text,
    -- With what it begins, until it has begun.
    given text,
    submit_key text COLLATE "C" UNIQUE,
    -- Claims in a row that led to nothing, and the position at the last one.
    claims integer NOT NULL DEFAULT 0,
    claimed_next bigint NOT NULL DEFAULT -1
) WITH (fillfactor = 70);
CREATE INDEX run_started ON callslip.run (started_at);
CREATE INDEX run_parent ON callslip.run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_holder ON callslip.run (holder) WHERE holder IS NOT NULL;
CREATE INDEX run_unfinished ON callslip.run (started_at) WHERE finished_at IS NULL;

-- Large JSON and the bytes of images and files, kept once by their SHA-256.
CREATE TABLE callslip.blob (
    hash bytea PRIMARY KEY,
    data bytea NOT NULL,
    used_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE TABLE callslip.run_content (
    run bigint NOT NULL,
    hash bytea NOT NULL,
    PRIMARY KEY (run, hash)
);
CREATE INDEX run_content_hash ON callslip.run_content (hash);

-- The log. `data` is the event's JSON without its kind, as text, because jsonb refuses \u0000 and changes numbers;
-- where there is a blob, a null stands in its place.
CREATE TABLE callslip.event (
    run bigint NOT NULL,
    seq bigint NOT NULL,
    at double precision NOT NULL,
    kind text NOT NULL,
    data text NOT NULL,
    blob bytea,
    PRIMARY KEY (run, seq)
);
CREATE INDEX event_blob ON callslip.event (blob) WHERE blob IS NOT NULL;

-- Arguments and result stand in the events of opening and completion. Once those were compacted, they stand here.
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
    parked boolean NOT NULL DEFAULT false,
    attempts integer NOT NULL DEFAULT 1,
    approval_reason text,
    parts text,
    PRIMARY KEY (run, id)
);
CREATE INDEX ticket_opened ON callslip.ticket (opened_at);
CREATE INDEX ticket_blob ON callslip.ticket (blob) WHERE blob IS NOT NULL;
CREATE INDEX ticket_open ON callslip.ticket (opened_at) WHERE outcome IS NULL;
CREATE INDEX ticket_parked ON callslip.ticket (run) WHERE parked;

-- Messages and decisions for runs, until they stand in their logs.
CREATE TABLE callslip.inbox (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run text COLLATE "C" NOT NULL,
    -- The run that is woken for it: its own, or the one whose claim covers it.
    holder text COLLATE "C" NOT NULL,
    kind text NOT NULL,
    ticket integer,
    body text,
    decided_by text,
    at double precision NOT NULL DEFAULT extract(epoch FROM clock_timestamp())
);
CREATE INDEX inbox_holder ON callslip.inbox (holder);
-- The first decision wins.
CREATE UNIQUE INDEX inbox_decision ON callslip.inbox (run, ticket) WHERE ticket IS NOT NULL;

-- Who is followed just now, and on which channel.
CREATE TABLE callslip.watch (
    run text COLLATE "C" NOT NULL,
    channel integer NOT NULL,
    until timestamptz NOT NULL,
    PRIMARY KEY (run, channel)
);

-- For people: nothing decides by it.
CREATE TABLE callslip.worker (
    id text PRIMARY KEY,
    version text NOT NULL,
    agents text[] NOT NULL,
    queues text[] NOT NULL,
    slots integer NOT NULL,
    busy integer NOT NULL,
    taken_over bigint NOT NULL DEFAULT 0,
    refused bigint NOT NULL DEFAULT 0,
    seen timestamptz NOT NULL
);

CREATE VIEW callslip.runs AS
SELECT
    id AS run_id,
    agent,
    protocol,
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
    tenant
FROM callslip.run
WHERE next > 0;

CREATE VIEW callslip.tickets AS
SELECT
    run.id AS run_id,
    'T' || ticket.id AS ticket,
    ticket.kind,
    ticket.tool,
    ticket.description,
    coalesce(ticket.arguments, (opened.data::json -> 'arguments')::text) AS arguments,
    ticket.turn,
    ticket.call_id,
    CASE WHEN ticket.outcome IS NULL THEN 'IN_PROGRESS' ELSE 'COMPLETED' END AS status,
    ticket.outcome,
    CASE ticket.outcome WHEN 'ok' THEN
        coalesce(convert_from(blob.data, 'UTF8'), ticket.text, (completed.data::json -> 'outcome' -> 'ok')::text)
    END AS result,
    CASE WHEN ticket.outcome = 'cancelled' THEN
            coalesce(ticket.text, CASE (completed.data::json -> 'outcome')::text
                WHEN '"not_begun"' THEN 'cancelled before it began: it had no effect'
                ELSE 'cancelled under way: whether it took effect is not known' END)
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, (completed.data::json -> 'outcome' -> ticket.outcome -> 'message')::text) END AS error,
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
LEFT JOIN callslip.blob ON blob.hash = coalesce(ticket.blob, completed.blob);

CREATE VIEW callslip.events AS
SELECT
    run.id AS run_id,
    event.seq,
    event.at,
    event.kind,
    CASE
        WHEN blob.data IS NULL THEN event.data
        WHEN event.kind = 'ticket_completed'
            THEN regexp_replace(event.data, '"ok":null', '"ok":' || replace(convert_from(blob.data, 'UTF8'), '\', '\\'))
        ELSE regexp_replace(event.data, '"setup":null', '"setup":' || replace(convert_from(blob.data, 'UTF8'), '\', '\\'))
    END AS data
FROM callslip.event
JOIN callslip.run ON run.key = event.run
LEFT JOIN callslip.blob ON blob.hash = event.blob;
