-- The tables are the store's own and may change from version to version; the views below are for everyone.

-- What a run's events add up to. Its task stands in its first event, so that a change of this row stays small.
CREATE TABLE run (
    key INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    agent TEXT NOT NULL,
    protocol TEXT NOT NULL,
    parent TEXT,
    parent_ticket INTEGER,
    stop_reason TEXT,
    error TEXT,
    turns INTEGER NOT NULL DEFAULT 0,
    violations INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0,
    output_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0,
    cost REAL NOT NULL DEFAULT 0,
    started_at REAL NOT NULL,
    updated_at REAL NOT NULL,
    finished_at REAL
) STRICT;
CREATE INDEX run_started ON run (started_at);
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_unfinished ON run (started_at) WHERE finished_at IS NULL;

-- Large JSON that events refer to, kept once by its SHA-256.
CREATE TABLE blob (
    key INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    data TEXT NOT NULL
) STRICT;

-- The log. `data` is the event's JSON without its kind; where there is a blob, a null stands in its place.
CREATE TABLE event (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    blob INTEGER,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
CREATE INDEX event_blob ON event (blob) WHERE blob IS NOT NULL;

-- Arguments and result stand in the events of opening and completion. Once those were compacted, they stand here.
CREATE TABLE ticket (
    run INTEGER NOT NULL,
    id INTEGER NOT NULL,
    kind TEXT NOT NULL,
    tool TEXT NOT NULL,
    description TEXT NOT NULL,
    turn INTEGER NOT NULL,
    call_id TEXT,
    opened_at REAL NOT NULL,
    opened_seq INTEGER,
    completed_at REAL,
    completed_seq INTEGER,
    outcome TEXT,
    arguments TEXT,
    text TEXT,
    blob INTEGER,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX ticket_opened ON ticket (opened_at);
CREATE INDEX ticket_blob ON ticket (blob) WHERE blob IS NOT NULL;
CREATE INDEX ticket_open ON ticket (opened_at) WHERE outcome IS NULL;

CREATE VIEW runs AS
SELECT
    id AS run_id,
    agent,
    protocol,
    (SELECT coalesce(event.data ->> '$.task', event.data ->> '$.start.task')
     FROM event WHERE event.run = run.key ORDER BY event.seq LIMIT 1) AS task,
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
    finished_at
FROM run;

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
    CASE WHEN ticket.outcome = 'cancelled' THEN 'cancelled under way: whether it took effect is not known'
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, completed.data ->> ('$.outcome.' || ticket.outcome || '.message')) END AS error,
    ticket.opened_at,
    ticket.completed_at
FROM ticket
JOIN run ON run.key = ticket.run
LEFT JOIN event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq
LEFT JOIN event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq
LEFT JOIN blob ON blob.key = coalesce(ticket.blob, completed.blob);

CREATE VIEW events AS
SELECT
    run.id AS run_id,
    event.seq,
    event.at,
    event.kind,
    CASE
        WHEN blob.data IS NULL THEN event.data
        WHEN event.kind = 'run_started' THEN json_set(event.data, '$.setup', json(blob.data))
        WHEN event.kind = 'compacted' THEN json_set(event.data, '$.start.setup', json(blob.data))
        ELSE json_set(event.data, '$.outcome.ok', json(blob.data))
    END AS data
FROM event
JOIN run ON run.key = event.run
LEFT JOIN blob ON blob.key = event.blob;
