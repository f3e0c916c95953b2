-- A store as version 1 made it. Never changed.
BEGIN TRANSACTION;
PRAGMA application_id = 1668508784;
PRAGMA user_version = 1;
CREATE TABLE blob (
    key INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    data TEXT NOT NULL
) STRICT;
INSERT INTO "blob" VALUES(1,X'30E87A542FBC946500D800502E7E2438F6D0CFA2E8D8C6CC73538C02FB5A7006','{"protocol":{"react":{"read":{"repairs":"default","think_prefilled":false}}},"prompt":"You are \"an agent\".\n\"setup\":null","tools":{"tools":[]},"limits":{"steps":50,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":true}');
INSERT INTO "blob" VALUES(2,X'E53F566725BB59C9954D354481A24D42D3B3AE84436E9D92046733CDBE4B65AE','{"ok": null, "what": "1xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}');
CREATE TABLE event (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    blob INTEGER,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "event" VALUES(1,0,1000.1,'run_started','{"version":1,"run_id":"r","agent":"agent","task":"Say \"setup\":null and 😀","setup":null}',1);
INSERT INTO "event" VALUES(1,1,1001.1,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(1,2,1002.1,'model_replied','{"turn":1,"text":"{\"a\": \"b\"}","streamed":false,"finish_reason":"stop","usage":{"input_tokens":100,"output_tokens":10,"cached_tokens":1,"cost":0.25},"repairs":[]}',NULL);
INSERT INTO "event" VALUES(1,3,1003.1,'ticket_opened','{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"add(1)","tool":"add","arguments":{"a":1.0,"b":"x\u0001y","c":[1e300]},"needs":[]}',NULL);
INSERT INTO "event" VALUES(1,4,1004.1,'ticket_completed','{"ticket":1,"outcome":{"ok":null}}',2);
INSERT INTO "event" VALUES(1,5,1005.1,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(1,6,1006.1,'model_replied','{"turn":2,"text":"{\"a\": \"b\"}","streamed":false,"finish_reason":"stop","usage":{"input_tokens":100,"output_tokens":10,"cached_tokens":1,"cost":0.25},"repairs":[]}',NULL);
INSERT INTO "event" VALUES(1,7,1007.1,'run_finished','{"reason":"finished","value":{"n":1.5},"success":true,"error":null,"limit":null}',NULL);
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
INSERT INTO "run" VALUES(1,'r','agent','react',NULL,NULL,'finished',NULL,2,0,200,20,2,0.5,1000.1,1007.1,1007.1);
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
INSERT INTO "ticket" VALUES(1,1,'tool_call','add','add(1)',1,NULL,1003.1,3,1004.1,4,'ok',NULL,NULL,NULL);
CREATE INDEX run_started ON run (started_at);
CREATE INDEX run_parent ON run (parent) WHERE parent IS NOT NULL;
CREATE INDEX run_unfinished ON run (started_at) WHERE finished_at IS NULL;
CREATE INDEX event_blob ON event (blob) WHERE blob IS NOT NULL;
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
COMMIT;
