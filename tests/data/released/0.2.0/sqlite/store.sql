PRAGMA application_id = 1668508784;
PRAGMA user_version = 4;
BEGIN TRANSACTION;
CREATE TABLE blob (
    key INTEGER PRIMARY KEY,
    hash BLOB NOT NULL UNIQUE,
    data TEXT NOT NULL
) STRICT;
INSERT INTO "blob" VALUES(1,X'468373C84EE9B383A085B4DFA692833713C2B1FF06E82DDFD5E37230CFA435BE','{"protocol":{"react":{"read":{"repairs":"default","think_prefilled":false}}},"prompt":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": \"the answer\", \"task_successful\": true}\nSet `task_successful` to false and explain in `final_answer` if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nadd(a: int, b: int)  # Add two numbers.\n","examples":[{"role":"user","content":"Example: Add two numbers. A: 47. B: 47."},{"role":"assistant","content":"{\"thought\": \"I call add(a: int, b: int).\", \"action\": \"add\", \"args\": {\"a\": 47, \"b\": 47}}"},{"role":"user","content":"Observation: Wexcombe 8264"},{"role":"assistant","content":"{\"thought\": \"The observation has the result.\", \"action\": \"FINISH\", \"final_answer\": \"It is Wexcombe 8264.\", \"task_successful\": true}"}],"tools":{"tools":[{"name":"add","description":"Add two numbers.","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false},"effect":"once","readonly":true,"repeatable":false}]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":false}');
INSERT INTO "blob" VALUES(2,X'3425EEF61368EA27ECF0FB3BEAC50F18B3FF42B0505F37FF91ACC0B454BAAF78','{"protocol":{"ticket":{"await_loads":false,"inline_results":true,"lists":"changes","read":{"repairs":"default","think_prefilled":false}}},"prompt":"You complete tasks. Every call of a base tool is a ticket (id, description, status IN_PROGRESS or COMPLETED); each\nmessage to you ends with the list of those that are new, changed or in progress.\n\nWrite notes between <thoughts> and </thoughts>, then one JSON object between <output> and </output>:\n{\"type\": \"CALL\", \"route\": \"...\", \"payload\": {\"argument\": \"value\"}, \"description\": \"why\"} opens a ticket and calls a base tool\n{\"type\": \"DELEGATE\", \"task\": \"...\"} opens a ticket and gives a part of the task, told in full, to another agent\n{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"} waits until the ticket is COMPLETED\n{\"type\": \"LOAD_TICKET\", \"ticket_id\": \"T1\"} shows the result of a COMPLETED ticket that is not shown yet\n{\"type\": \"RETURN\", \"value\": \"...\"} ends the task with a value, which may be any JSON\n\nBase tools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nadd(a: int, b: int)  # Add two numbers.\n","examples":[{"role":"user","content":"Example: Add two numbers. A: 47. B: 47.\n\nTickets:\n[]"},{"role":"assistant","content":"<thoughts>\nNo ticket has this yet. I call add(a: int, b: int).\n</thoughts>\n<output>\n{\"type\": \"CALL\", \"route\": \"add\", \"payload\": {\"a\": 47, \"b\": 47}, \"description\": \"Add two numbers\"}\n</output>"},{"role":"user","content":"Result of ticket T1:\n\"Wexcombe 8264\"\n\nTickets:\n[{\"id\":\"T1\",\"description\":\"Add two numbers\",\"status\":\"COMPLETED\"}]"},{"role":"assistant","content":"<thoughts>\nT1 has the result: Wexcombe 8264.\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"Wexcombe 8264\"}\n</output>"}],"tools":{"tools":[{"name":"add","description":"Add two numbers.","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false},"effect":"once","readonly":true,"repeatable":false}]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","delegates":true,"call_first":false,"early_stop":true,"early_start":false}');
INSERT INTO "blob" VALUES(3,X'4B4944DA97E2B02A814B75AF105D36947CEA19CED36DEC49E0D507FC04DFC8B1','{"protocol":{"ticket":{"await_loads":false,"inline_results":true,"lists":"changes","read":{"repairs":"default","think_prefilled":false}}},"prompt":"You complete tasks. Every call of a base tool is a ticket (id, description, status IN_PROGRESS or COMPLETED); each\nmessage to you ends with the list of those that are new, changed or in progress.\n\nWrite notes between <thoughts> and </thoughts>, then one JSON object between <output> and </output>:\n{\"type\": \"CALL\", \"route\": \"...\", \"payload\": {\"argument\": \"value\"}, \"description\": \"why\"} opens a ticket and calls a base tool\n{\"type\": \"DELEGATE\", \"task\": \"...\"} opens a ticket and gives a part of the task, told in full, to another agent\n{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"} waits until the ticket is COMPLETED\n{\"type\": \"LOAD_TICKET\", \"ticket_id\": \"T1\"} shows the result of a COMPLETED ticket that is not shown yet\n{\"type\": \"RETURN\", \"value\": \"...\"} ends the task with a value, which may be any JSON\n\nBase tools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\n\n","tools":{"tools":[]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","delegates":true,"call_first":false,"early_stop":true,"early_start":false}');
INSERT INTO "blob" VALUES(4,X'FBC5E486B81B70DD4C332F15F04E9145E72D5D249A61251F898C1FB9F5B933EC','{"protocol":{"chatty":{"tags":{"start":"<tool>","end":"</tool>"},"results":"lines","read":{"repairs":"default","think_prefilled":false}}},"prompt":"You answer the user''s request. If you need data or an action, reply with one tool block and nothing else: a JSON array of\ncalls between <tool> and </tool>. The next message holds their results; then answer in plain text.\n\nEach `call_id` is unique; an argument \"$call_1\" stands for the result of the earlier call `call_1`. Use tool and\nparameter names exactly as listed, with every required parameter; do not repeat a call that failed.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nadd(a: int, b: int)  # Add two numbers.\n","examples":[{"role":"user","content":"Example: Add two numbers. (1) A: 47. B: 47. (2) A: 50. B: 50.\n\nCall a tool first if one of them can give the answer."},{"role":"assistant","content":"<tool>\n[{\"call_id\": \"call_1\", \"tool_name\": \"add\", \"arguments\": {\"a\": 47, \"b\": 47}}, {\"call_id\": \"call_2\", \"tool_name\": \"add\", \"arguments\": {\"a\": 50, \"b\": 50}}]\n</tool>"},{"role":"user","content":"TOOL_EXECUTION_RESULT\nadd (call_1): Lowmarsh 5917\nadd (call_2): Harfield 3046"},{"role":"assistant","content":"The results are Lowmarsh 5917 and Harfield 3046."},{"role":"user","content":"Example: Add two numbers. A: 47. B: 47.\n\nCall a tool first if one of them can give the answer."},{"role":"assistant","content":"<tool>\n[{\"call_id\": \"call_1\", \"tool_name\": \"add\", \"arguments\": {\"a\": 47, \"b\": 47}}]\n</tool>"},{"role":"user","content":"TOOL_EXECUTION_RESULT\nadd (call_1): Wexcombe 8264"},{"role":"assistant","content":"The result is Wexcombe 8264."}],"reminder":"Call a tool first if one of them can give the answer.","tools":{"tools":[{"name":"add","description":"Add two numbers.","parameters":{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"integer"}},"required":["a","b"],"additionalProperties":false},"effect":"once","readonly":true,"repeatable":false}]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":true}');
INSERT INTO "blob" VALUES(5,X'E7D487FEF34386DA4E31C1551ECF15C24D5F7EBD7373407381E29CB144400F95','{"protocol":{"chatty":{"tags":{"start":"<tool>","end":"</tool>"},"results":"lines","read":{"repairs":"default","think_prefilled":false}}},"prompt":"You answer the user''s request. If you need data or an action, reply with one tool block and nothing else: a JSON array of\ncalls between <tool> and </tool>. The next message holds their results; then answer in plain text.\n\nEach `call_id` is unique; an argument \"$call_1\" stands for the result of the earlier call `call_1`. Use tool and\nparameter names exactly as listed, with every required parameter; do not repeat a call that failed.\n\n`spawn_agent` gives a part of the request, told in full, to another agent that works in the background. To have the\nresults, call `wait_for_agents` as the last call of a block, then or in a later block:\n<tool>\n[{\"call_id\": \"plan\", \"tool_name\": \"spawn_agent\", \"arguments\": {\"role\": \"Planner\", \"prompt\": \"Plan the trip.\"}},\n {\"call_id\": \"wait\", \"tool_name\": \"wait_for_agents\", \"arguments\": {\"agent_ids\": [\"$plan\"]}}]\n</tool>\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nspawn_agent(role: str, prompt: str)  # Start another agent, which works in the background.\n  role: Who the agent is, for example Planner or Reviewer.\n  prompt: What it is to do, with all that it needs to know.\nwait_for_agents(agent_ids: [str])  # Wait until agents have ended and get their results. It must be the last call of a block.\n  agent_ids: The call_ids of the agents, each with a $ before it.\n","tools":{"tools":[{"name":"spawn_agent","description":"Start another agent, which works in the background.","parameters":{"type":"object","properties":{"role":{"type":"string","description":"Who the agent is, for example Planner or Reviewer."},"prompt":{"type":"string","minLength":1,"description":"What it is to do, with all that it needs to know."}},"required":["role","prompt"],"additionalProperties":false},"kind":"spawn","effect":"idempotent","readonly":false,"repeatable":false},{"name":"wait_for_agents","description":"Wait until agents have ended and get their results. It must be the last call of a block.","parameters":{"type":"object","properties":{"agent_ids":{"type":"array","items":{"type":"string"},"minItems":1,"description":"The call_ids of the agents, each with a $ before it."}},"required":["agent_ids"],"additionalProperties":false},"kind":"wait","effect":"idempotent","readonly":false,"repeatable":true}]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":true}');
INSERT INTO "blob" VALUES(6,X'A9C1547BE7A7DF3C6A94FE9890D994230608AC7ECF40210354DC82BF49B0E984','{"protocol":{"react":{"returns":{"type":"integer"},"read":{"repairs":"default","think_prefilled":false}}},"prompt":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": 47, \"task_successful\": true}\n`final_answer` is JSON of the type int.\nSet `task_successful` to false if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\n\n","tools":{"tools":[]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":false}');
INSERT INTO "blob" VALUES(7,X'937DDADC3A017412BF789A21DA2592277F8CED6D85862BAB754826E47FB55136','{"protocol":{"react":{"read":{"repairs":"default","think_prefilled":false}}},"prompt":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": \"the answer\", \"task_successful\": true}\nSet `task_successful` to false and explain in `final_answer` if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nfetch(name: str)  # Fetch a file.\n","examples":[{"role":"user","content":"Example: Fetch a file. Name: Marlowe."},{"role":"assistant","content":"{\"thought\": \"I call fetch(name: str).\", \"action\": \"fetch\", \"args\": {\"name\": \"Marlowe\"}}"},{"role":"user","content":"Observation: Wexcombe 8264"},{"role":"assistant","content":"{\"thought\": \"The observation has the result.\", \"action\": \"FINISH\", \"final_answer\": \"It is Wexcombe 8264.\", \"task_successful\": true}"}],"tools":{"tools":[{"name":"fetch","description":"Fetch a file.","parameters":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false},"effect":"once","readonly":true,"repeatable":false}]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":false}');
INSERT INTO "blob" VALUES(8,X'45A0D7E3B0995680937901635EE3F7282D76243112E276D93B1FB41FF25BF2EA','{"protocol":{"react":{"read":{"repairs":"default","think_prefilled":false}}},"prompt":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": \"the answer\", \"task_successful\": true}\nSet `task_successful` to false and explain in `final_answer` if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\n\n","tools":{"tools":[]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":false}');
INSERT INTO "blob" VALUES(9,X'C529AD4A1FAEBD15C8AFE6DEA6D616B33A959A1D105E9358988072584E78AF19','{"protocol":{"react":{"read":{"repairs":"default","think_prefilled":false}}},"prompt":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": \"the answer\", \"task_successful\": true}\nSet `task_successful` to false and explain in `final_answer` if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\npay(amount: int)  # Pay.\n","examples":[{"role":"user","content":"Example: Pay. Amount: 47."},{"role":"assistant","content":"{\"thought\": \"I call pay(amount: int).\", \"action\": \"pay\", \"args\": {\"amount\": 47}}"},{"role":"user","content":"Observation: Wexcombe 8264"},{"role":"assistant","content":"{\"thought\": \"The observation has the result.\", \"action\": \"FINISH\", \"final_answer\": \"It is Wexcombe 8264.\", \"task_successful\": true}"}],"tools":{"tools":[{"name":"pay","description":"Pay.","parameters":{"type":"object","properties":{"amount":{"type":"integer"}},"required":["amount"],"additionalProperties":false},"effect":"once","readonly":false,"needs_approval":true,"repeatable":false}]},"limits":{"steps":9,"tickets":500,"open_tickets":32,"seconds":null,"tokens":null,"cost":null,"reply_bytes":16777216,"json_depth":128,"json_digits":1000,"json_values":4000000,"json_key_bytes":65536,"json_blanks":262144,"json_repairs":100000,"result_bytes":32768,"max_violations":3,"max_repeats":3},"on_limit":"answer","on_open_tickets":"wait","call_first":false,"early_stop":true,"early_start":false}');
CREATE TABLE content (
    key INTEGER PRIMARY KEY,
    hash TEXT NOT NULL UNIQUE,
    data BLOB NOT NULL
) STRICT;
INSERT INTO "content" VALUES(1,'074425855f4b5a291b9aa2adc2f6294251151127ad11dc883296d837e3dd4df0',X'255044462D312E34206F66207468652074657374');
CREATE TABLE event (
    run INTEGER NOT NULL,
    seq INTEGER NOT NULL,
    at REAL NOT NULL,
    kind TEXT NOT NULL,
    data TEXT NOT NULL,
    blob INTEGER,
    PRIMARY KEY (run, seq)
) STRICT, WITHOUT ROWID;
INSERT INTO "event" VALUES(1,0,1.79571204777969813341e+09,'run_started','{"version":7,"run_id":"2aee6a82d967e791","agent":"react","task":"Add 2 and 3","setup":null}',1);
INSERT INTO "event" VALUES(1,1,1.79571204777969813341e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(1,2,1.7957120478021624089e+09,'model_replied','{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"add\", \"args\": \"{\\\"a\\\": 2, \\\"b\\\": 3}\"}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(1,3,1.7957120478021624089e+09,'moved','{"turn":1,"move":{"call":{"calls":[{"tool":"add","arguments":{"a":2,"b":3},"span":{"start":0,"end":65},"tool_span":{"start":27,"end":32},"arguments_span":{"start":42,"end":64}}]}}}',NULL);
INSERT INTO "event" VALUES(1,4,1.7957120478021624089e+09,'ticket_opened','{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"add {\"a\":2,\"b\":3}","tool":"add","arguments":{"a":2,"b":3},"needs":[]}',NULL);
INSERT INTO "event" VALUES(1,5,1.79571204780338788031e+09,'ticket_completed','{"ticket":1,"outcome":{"ok":5}}',NULL);
INSERT INTO "event" VALUES(1,6,1.79571204780338788031e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(1,7,1.79571204780399107936e+09,'model_replied','{"turn":2,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"5\", \"task_successful\": true}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(1,8,1.79571204780399107936e+09,'moved','{"turn":2,"move":{"finish":{"value":"5","success":true}}}',NULL);
INSERT INTO "event" VALUES(1,9,1.79571204780399107936e+09,'run_finished','{"reason":"finished","value":"5","success":true,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(2,0,1.79571204780522274968e+09,'run_started','{"version":7,"run_id":"0a2bff55eb0714a4","agent":"ticket","task":"Add 2 and 3","setup":null}',2);
INSERT INTO "event" VALUES(2,1,1.79571204780522274968e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(2,2,1.79571204781022167209e+09,'model_replied','{"turn":1,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"CALL\", \"route\": \"/add\", \"payload\": {\"a\": 2, \"b\": 3}, \"description\": \"d\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(2,3,1.79571204781022167209e+09,'moved','{"turn":1,"move":{"call":{"calls":[{"tool":"/add","arguments":{"a":2,"b":3},"description":"d","span":{"start":37,"end":119},"tool_span":{"start":63,"end":69},"arguments_span":{"start":82,"end":98}}]}}}',NULL);
INSERT INTO "event" VALUES(2,4,1.79571204781022167209e+09,'ticket_opened','{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"d","tool":"add","arguments":{"a":2,"b":3},"needs":[]}',NULL);
INSERT INTO "event" VALUES(2,5,1.79571204781412386893e+09,'ticket_completed','{"ticket":1,"outcome":{"ok":5}}',NULL);
INSERT INTO "event" VALUES(2,6,1.79571204781412386893e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(2,7,1.79571204781808948514e+09,'model_replied','{"turn":2,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(2,8,1.79571204781808948514e+09,'moved','{"turn":2,"move":{"await":{"ticket_id":"T1"}}}',NULL);
INSERT INTO "event" VALUES(2,9,1.79571204781808948514e+09,'model_asked','{"turn":3}',NULL);
INSERT INTO "event" VALUES(2,10,1.79571204782027745239e+09,'model_replied','{"turn":3,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"LOAD_TICKET\", \"ticket_id\": \"T1\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(2,11,1.79571204782027745239e+09,'moved','{"turn":3,"move":{"load":{"ticket_id":"T1"}}}',NULL);
INSERT INTO "event" VALUES(2,12,1.79571204782027745239e+09,'model_asked','{"turn":4}',NULL);
INSERT INTO "event" VALUES(2,13,1.79571204782465124131e+09,'model_replied','{"turn":4,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"5\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(2,14,1.79571204782465124131e+09,'moved','{"turn":4,"move":{"finish":{"value":"5"}}}',NULL);
INSERT INTO "event" VALUES(2,15,1.79571204782465124131e+09,'run_finished','{"reason":"finished","value":"5","success":null,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(3,0,1.79571204782970905299e+09,'run_started','{"version":7,"run_id":"cfca51308a0a5bcf","agent":"delegates","task":"Add 2 and 3","setup":null}',3);
INSERT INTO "event" VALUES(3,1,1.79571204782970905299e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(3,2,1.79571204783406233786e+09,'model_replied','{"turn":1,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"DELEGATE\", \"task\": \"Add 2 and 3 as well\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(3,3,1.79571204783406233786e+09,'moved','{"turn":1,"move":{"delegate":{"task":"Add 2 and 3 as well"}}}',NULL);
INSERT INTO "event" VALUES(3,4,1.79571204783406233786e+09,'ticket_opened','{"ticket":1,"kind":"task","turn":1,"call":0,"call_id":null,"description":"Add 2 and 3 as well","tool":"DELEGATE","arguments":{"task":"Add 2 and 3 as well"},"needs":[]}',NULL);
INSERT INTO "event" VALUES(3,5,1.79571204784894657138e+09,'ticket_completed','{"ticket":1,"outcome":{"ok":"5"},"spent":{"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost":0.0},"tickets":0,"runs":0}}',NULL);
INSERT INTO "event" VALUES(3,6,1.79571204784894657138e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(3,7,1.79571204785049843783e+09,'model_replied','{"turn":2,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"AWAIT\", \"ticket_id\": \"T1\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(3,8,1.79571204785049843783e+09,'moved','{"turn":2,"move":{"await":{"ticket_id":"T1"}}}',NULL);
INSERT INTO "event" VALUES(3,9,1.79571204785049843783e+09,'model_asked','{"turn":3}',NULL);
INSERT INTO "event" VALUES(3,10,1.79571204785806250569e+09,'model_replied','{"turn":3,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"5\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(3,11,1.79571204785806250569e+09,'moved','{"turn":3,"move":{"finish":{"value":"5"}}}',NULL);
INSERT INTO "event" VALUES(3,12,1.79571204785806250569e+09,'run_finished','{"reason":"finished","value":"5","success":null,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(4,0,1.79571204783815884594e+09,'run_started','{"version":7,"run_id":"cfca51308a0a5bcf.T1","agent":"delegates","parent":{"run_id":"cfca51308a0a5bcf","ticket":1},"depth":1,"task":"Add 2 and 3 as well","setup":null}',3);
INSERT INTO "event" VALUES(4,1,1.79571204783815884594e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(4,2,1.79571204784206223483e+09,'model_replied','{"turn":1,"text":"<thoughts>\nplan\n</thoughts>\n<output>\n{\"type\": \"RETURN\", \"value\": \"5\"}\n</output>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(4,3,1.79571204784206223483e+09,'moved','{"turn":1,"move":{"finish":{"value":"5"}}}',NULL);
INSERT INTO "event" VALUES(4,4,1.79571204784206223483e+09,'run_finished','{"reason":"finished","value":"5","success":null,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(5,0,1.79571204786712455749e+09,'run_started','{"version":7,"run_id":"e3cc456c06508c69","agent":"chatty","task":"Add 2 and 3","setup":null}',4);
INSERT INTO "event" VALUES(5,1,1.79571204786712455749e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(5,2,1.79571204787005090711e+09,'model_replied','{"turn":1,"text":"<tool>[{\"call_id\": \"c\", \"tool_name\": \"add\", \"arguments\": {\"a\": 2, \"b\": 3}}]</tool>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(5,3,1.79571204787005090711e+09,'moved','{"turn":1,"move":{"call":{"calls":[{"call_id":"c","tool":"add","arguments":{"a":2,"b":3},"span":{"start":7,"end":74},"tool_span":{"start":37,"end":42},"arguments_span":{"start":57,"end":73}}]}}}',NULL);
INSERT INTO "event" VALUES(5,4,1.79571204787005090711e+09,'ticket_opened','{"ticket":1,"turn":1,"call":0,"call_id":"c","description":"add {\"a\":2,\"b\":3}","tool":"add","arguments":{"a":2,"b":3},"needs":[]}',NULL);
INSERT INTO "event" VALUES(5,5,1.79571204787357425686e+09,'ticket_completed','{"ticket":1,"outcome":{"ok":5}}',NULL);
INSERT INTO "event" VALUES(5,6,1.79571204787357425686e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(5,7,1.79571204788080692298e+09,'model_replied','{"turn":2,"text":"5","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(5,8,1.79571204788080692298e+09,'moved','{"turn":2,"move":{"finish":{"value":"5"}}}',NULL);
INSERT INTO "event" VALUES(5,9,1.79571204788080692298e+09,'run_finished','{"reason":"finished","value":"5","success":null,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(6,0,1.79571204789015603058e+09,'run_started','{"version":7,"run_id":"f93b2ee99f0e1121","agent":"spawns","task":"Add 2 and 3","setup":null}',5);
INSERT INTO "event" VALUES(6,1,1.79571204789015603058e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(6,2,1.795712047894056797e+09,'model_replied','{"turn":1,"text":"<tool>[{\"call_id\": \"s\", \"tool_name\": \"spawn_agent\", \"arguments\": {\"role\": \"Worker\", \"prompt\": \"Add 2 and 3\"}}]</tool>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(6,3,1.795712047894056797e+09,'moved','{"turn":1,"move":{"call":{"calls":[{"call_id":"s","tool":"spawn_agent","arguments":{"role":"Worker","prompt":"Add 2 and 3"},"span":{"start":7,"end":109},"tool_span":{"start":37,"end":50},"arguments_span":{"start":65,"end":108}}]}}}',NULL);
INSERT INTO "event" VALUES(6,4,1.795712047894056797e+09,'ticket_opened','{"ticket":1,"kind":"task","turn":1,"call":0,"call_id":"s","description":"spawn_agent {\"role\":\"Worker\",\"prompt\":\"Add 2 and 3\"}","tool":"spawn_agent","arguments":{"role":"Worker","prompt":"Add 2 and 3"},"needs":[],"detached":true}',NULL);
INSERT INTO "event" VALUES(6,5,1.795712047894056797e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(6,6,1.79571204790182614328e+09,'model_replied','{"turn":2,"text":"5","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(6,7,1.79571204790182614328e+09,'moved','{"turn":2,"move":{"finish":{"value":"5"}}}',NULL);
INSERT INTO "event" VALUES(6,8,1.79571204792600440979e+09,'ticket_completed','{"ticket":1,"outcome":{"ok":"5"},"spent":{"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost":0.0},"tickets":0,"runs":0}}',NULL);
INSERT INTO "event" VALUES(6,9,1.79571204792600440979e+09,'run_finished','{"reason":"finished","value":"5","success":null,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(7,0,1.79571204790133476256e+09,'run_started','{"version":7,"run_id":"f93b2ee99f0e1121.T1","agent":"spawns","parent":{"run_id":"f93b2ee99f0e1121","ticket":1},"depth":1,"task":"Your role: Worker\n\nAdd 2 and 3","setup":null}',5);
INSERT INTO "event" VALUES(7,1,1.79571204790133476256e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(7,2,1.79571204790949702262e+09,'model_replied','{"turn":1,"text":"<tool>[{\"call_id\": \"wait\", \"tool_name\": \"wait_for_agents\", \"arguments\": {\"agent_ids\": [\"$s\"]}}]</tool>","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(7,3,1.79571204790949702262e+09,'violated','{"turn":1,"violation":{"code":"bad_reference","message":"expected the call_id of an agent that was spawned: got ''$s''","span":{"start":72,"end":93},"pointer":"/agent_ids/0","hint":"there is none yet: spawn_agent comes first"}}',NULL);
INSERT INTO "event" VALUES(7,4,1.79571204790949702262e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(7,5,1.79571204792141366e+09,'model_replied','{"turn":2,"text":"5","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(7,6,1.79571204792141366e+09,'moved','{"turn":2,"move":{"finish":{"value":"5"}}}',NULL);
INSERT INTO "event" VALUES(7,7,1.79571204792141366e+09,'run_finished','{"reason":"finished","value":"5","success":null,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(8,0,1.79571204793258333209e+09,'run_started','{"version":7,"run_id":"7745658b9e60a89f","agent":"typed","task":"Add 2 and 3","setup":null}',6);
INSERT INTO "event" VALUES(8,1,1.79571204793258333209e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(8,2,1.79571204793805122373e+09,'model_replied','{"turn":1,"text":"no JSON","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(8,3,1.79571204793805122373e+09,'violated','{"turn":1,"violation":{"code":"no_action","message":"expected one JSON object with ''action'': got none","expected":"{\"thought\": \"why\", \"action\": \"tool_name\", \"args\": {\"name\": \"value\"}}","hint":"reply with the object alone, without text around it"}}',NULL);
INSERT INTO "event" VALUES(8,4,1.79571204793805122373e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(8,5,1.79571204794606828687e+09,'model_replied','{"turn":2,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": 5, \"task_successful\": true}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(8,6,1.79571204794606828687e+09,'moved','{"turn":2,"move":{"finish":{"value":5,"success":true}}}',NULL);
INSERT INTO "event" VALUES(8,7,1.79571204794606828687e+09,'run_finished','{"reason":"finished","value":5,"success":true,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(9,0,1.79571204795240569112e+09,'run_started','{"version":7,"run_id":"d537a29eda3df8f9","agent":"part","task":"Add 2 and 3","setup":null}',7);
INSERT INTO "event" VALUES(9,1,1.79571204795240569112e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(9,2,1.79571204796183466912e+09,'model_replied','{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"fetch\", \"args\": \"{\\\"name\\\": \\\"a.pdf\\\"}\"}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(9,3,1.79571204796183466912e+09,'moved','{"turn":1,"move":{"call":{"calls":[{"tool":"fetch","arguments":{"name":"a.pdf"},"span":{"start":0,"end":68},"tool_span":{"start":27,"end":34},"arguments_span":{"start":44,"end":67}}]}}}',NULL);
INSERT INTO "event" VALUES(9,4,1.79571204796183466912e+09,'ticket_opened','{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"fetch {\"name\":\"a.pdf\"}","tool":"fetch","arguments":{"name":"a.pdf"},"needs":[]}',NULL);
INSERT INTO "event" VALUES(9,5,1.79571204796994090082e+09,'ticket_completed','{"ticket":1,"outcome":{"ok":"[file application/pdf, 20 bytes, T1, a.pdf]"},"parts":[{"label":"T1","media_type":"application/pdf","name":"a.pdf","bytes":20,"sha256":"074425855f4b5a291b9aa2adc2f6294251151127ad11dc883296d837e3dd4df0"}]}',NULL);
INSERT INTO "event" VALUES(9,6,1.79571204796994090082e+09,'model_asked','{"turn":2}',NULL);
INSERT INTO "event" VALUES(9,7,1.79571204797378325464e+09,'model_replied','{"turn":2,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"5\", \"task_successful\": true}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(9,8,1.79571204797378325464e+09,'moved','{"turn":2,"move":{"finish":{"value":"5","success":true}}}',NULL);
INSERT INTO "event" VALUES(9,9,1.79571204797378325464e+09,'run_finished','{"reason":"finished","value":"5","success":true,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(10,9,1.79571204800360870361e+09,'compacted','{"start":{"version":7,"run_id":"ad6b68efac5e6f1b","agent":"compacted","task":"Add 2 and 3","setup":null},"hash":"dc81f232fa057bf98d7826e031e3fe75b3753c303a3bd5557c6d86aaf909369e","sum":"36a7e188d1bbbf6425742e776905edfe43c2e7630fefcfa1ce4d04ef08f45c77","state":{"result_bytes":32768,"messages":[{"role":"system","content":"You solve tasks step by step with tools. \n\nReply with one JSON object and nothing else.\n\nTo call a tool:\n{\"thought\": \"why\", \"action\": \"tool name\", \"args\": {\"parameter\": \"value\"}}\n`args` is a JSON object with every required parameter. The next message is the observation.\n\nTo finish:\n{\"thought\": \"why\", \"action\": \"FINISH\", \"final_answer\": \"the answer\", \"task_successful\": true}\nSet `task_successful` to false and explain in `final_answer` if the task cannot be done.\n\nRules: one action a reply; never `args` beside `final_answer`; tool and parameter names exactly as listed; never\nrepeat a call that failed with the same args.\n\nTools:\nOne tool a line, as name(arguments): an argument with ? may be left out.\nadd(a: int, b: int)  # Add two numbers.\n"},{"role":"user","content":"Example: Add two numbers. A: 47. B: 47."},{"role":"assistant","content":"{\"thought\": \"I call add(a: int, b: int).\", \"action\": \"add\", \"args\": {\"a\": 47, \"b\": 47}}"},{"role":"user","content":"Observation: Wexcombe 8264"},{"role":"assistant","content":"{\"thought\": \"The observation has the result.\", \"action\": \"FINISH\", \"final_answer\": \"It is Wexcombe 8264.\", \"task_successful\": true}"},{"role":"user","content":"Add 2 and 3"},{"role":"assistant","content":"{\"thought\": \"t\", \"action\": \"add\", \"args\": \"{\\\"a\\\": 2, \\\"b\\\": 3}\"}"},{"role":"user","content":"Observation: 5"},{"role":"assistant","content":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"5\", \"task_successful\": true}"}],"tickets":{"tickets":[{"id":1,"description":"add {\"a\":2,\"b\":3}","tool":"add","arguments":{"a":2,"b":3},"turn":1,"call_id":null,"opened_at":1795712047.9901638,"completed_at":1795712047.9980958,"outcome":{"ok":5}}],"open":0},"usage":{"input_tokens":0,"output_tokens":0,"cached_tokens":0,"cost":0.0},"phase":"finished","turn":2,"started_at":1795712047.982922,"paused":0.0,"last_at":1795712048.0036087,"interrupted":"closing","midway":false,"batch_size":1,"violations":0,"violations_total":0,"last_turn":null,"limit":null,"called":true,"ending":{"reason":"finished","value":"5","success":true,"error":null},"answer":["5",true],"open_calls":{},"call_ids":{},"repetition":{"seen":{"add{\"1:a#2\"1:b#3}":{"failed":false,"last":1,"times":1}},"refused":0},"batch":{},"batch_open":0,"times":{},"loaded":[],"tellings":[]}}',1);
INSERT INTO "event" VALUES(11,0,1.79571204801865601536e+09,'run_started','{"version":7,"run_id":"c3c2a67967f64e8e","agent":"failed","task":"Add 2 and 3","setup":null}',8);
INSERT INTO "event" VALUES(11,1,1.79571204801865601536e+09,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(11,2,1.79571204802383089065e+09,'model_replied','{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"FINISH\", \"final_answer\": \"no\", \"task_successful\": false}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(11,3,1.79571204802383089065e+09,'moved','{"turn":1,"move":{"finish":{"value":"no","success":false}}}',NULL);
INSERT INTO "event" VALUES(11,4,1.79571204802383089065e+09,'run_finished','{"reason":"finished","value":"no","success":false,"error":null,"limit":null}',NULL);
INSERT INTO "event" VALUES(12,0,1795712048.03109,'run_started','{"version":7,"run_id":"58863bcc9403e1da","agent":"open","task":"Add 2 and 3","setup":null}',9);
INSERT INTO "event" VALUES(12,1,1795712048.03109,'model_asked','{"turn":1}',NULL);
INSERT INTO "event" VALUES(12,2,1.79571204803806400303e+09,'model_replied','{"turn":1,"text":"{\"thought\": \"t\", \"action\": \"pay\", \"args\": \"{\\\"amount\\\": 7}\"}","streamed":false,"finish_reason":"stop","usage":null,"repairs":[]}',NULL);
INSERT INTO "event" VALUES(12,3,1.79571204803806400303e+09,'moved','{"turn":1,"move":{"call":{"calls":[{"tool":"pay","arguments":{"amount":7},"span":{"start":0,"end":60},"tool_span":{"start":27,"end":32},"arguments_span":{"start":42,"end":59}}]}}}',NULL);
INSERT INTO "event" VALUES(12,4,1.79571204803806400303e+09,'ticket_opened','{"ticket":1,"turn":1,"call":0,"call_id":null,"description":"pay {\"amount\":7}","tool":"pay","arguments":{"amount":7},"needs":[],"needs_approval":true}',NULL);
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
INSERT INTO "run" VALUES(1,'2aee6a82d967e791','react','react',NULL,NULL,'finished',NULL,2,0,0,0,0,0.0,1.79571204777969813341e+09,1.79571204780399107936e+09,1.79571204780399107936e+09);
INSERT INTO "run" VALUES(2,'0a2bff55eb0714a4','ticket','ticket',NULL,NULL,'finished',NULL,4,0,0,0,0,0.0,1.79571204780522274968e+09,1.79571204782465124131e+09,1.79571204782465124131e+09);
INSERT INTO "run" VALUES(3,'cfca51308a0a5bcf','delegates','ticket',NULL,NULL,'finished',NULL,3,0,0,0,0,0.0,1.79571204782970905299e+09,1.79571204785806250569e+09,1.79571204785806250569e+09);
INSERT INTO "run" VALUES(4,'cfca51308a0a5bcf.T1','delegates','ticket','cfca51308a0a5bcf',1,'finished',NULL,1,0,0,0,0,0.0,1.79571204783815884594e+09,1.79571204784206223483e+09,1.79571204784206223483e+09);
INSERT INTO "run" VALUES(5,'e3cc456c06508c69','chatty','chatty',NULL,NULL,'finished',NULL,2,0,0,0,0,0.0,1.79571204786712455749e+09,1.79571204788080692298e+09,1.79571204788080692298e+09);
INSERT INTO "run" VALUES(6,'f93b2ee99f0e1121','spawns','chatty',NULL,NULL,'finished',NULL,2,0,0,0,0,0.0,1.79571204789015603058e+09,1.79571204792600440979e+09,1.79571204792600440979e+09);
INSERT INTO "run" VALUES(7,'f93b2ee99f0e1121.T1','spawns','chatty','f93b2ee99f0e1121',1,'finished',NULL,2,1,0,0,0,0.0,1.79571204790133476256e+09,1.79571204792141366e+09,1.79571204792141366e+09);
INSERT INTO "run" VALUES(8,'7745658b9e60a89f','typed','react',NULL,NULL,'finished',NULL,2,1,0,0,0,0.0,1.79571204793258333209e+09,1.79571204794606828687e+09,1.79571204794606828687e+09);
INSERT INTO "run" VALUES(9,'d537a29eda3df8f9','part','react',NULL,NULL,'finished',NULL,2,0,0,0,0,0.0,1.79571204795240569112e+09,1.79571204797378325464e+09,1.79571204797378325464e+09);
INSERT INTO "run" VALUES(10,'ad6b68efac5e6f1b','compacted','react',NULL,NULL,'finished',NULL,2,0,0,0,0,0.0,1.79571204798292207716e+09,1.79571204800360870361e+09,1.79571204800360870361e+09);
INSERT INTO "run" VALUES(11,'c3c2a67967f64e8e','failed','react',NULL,NULL,'finished',NULL,1,0,0,0,0,0.0,1.79571204801865601536e+09,1.79571204802383089065e+09,1.79571204802383089065e+09);
INSERT INTO "run" VALUES(12,'58863bcc9403e1da','open','react',NULL,NULL,NULL,NULL,1,0,0,0,0,0.0,1795712048.03109,1.79571204803806400303e+09,NULL);
CREATE TABLE run_content (
    run INTEGER NOT NULL,
    content INTEGER NOT NULL,
    PRIMARY KEY (run, content)
) STRICT, WITHOUT ROWID;
INSERT INTO "run_content" VALUES(9,1);
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
    blob INTEGER, parked INTEGER NOT NULL DEFAULT 0, attempts INTEGER NOT NULL DEFAULT 1, approval_reason TEXT, parts TEXT,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
INSERT INTO "ticket" VALUES(1,1,'tool_call','add','add {"a":2,"b":3}',1,NULL,1.7957120478021624089e+09,4,1.79571204780338788031e+09,5,'ok',NULL,NULL,NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(2,1,'tool_call','add','d',1,NULL,1.79571204781022167209e+09,4,1.79571204781412386893e+09,5,'ok',NULL,NULL,NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(3,1,'task','DELEGATE','Add 2 and 3 as well',1,NULL,1.79571204783406233786e+09,4,1.79571204784894657138e+09,5,'ok',NULL,NULL,NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(5,1,'tool_call','add','add {"a":2,"b":3}',1,'c',1.79571204787005090711e+09,4,1.79571204787357425686e+09,5,'ok',NULL,NULL,NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(6,1,'task','spawn_agent','spawn_agent {"role":"Worker","prompt":"Add 2 and 3"}',1,'s',1.795712047894056797e+09,4,1.79571204792600440979e+09,8,'ok',NULL,NULL,NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(9,1,'tool_call','fetch','fetch {"name":"a.pdf"}',1,NULL,1.79571204796183466912e+09,4,1.79571204796994090082e+09,5,'ok',NULL,NULL,NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(10,1,'tool_call','add','add {"a":2,"b":3}',1,NULL,1.79571204799016380304e+09,NULL,1.7957120479980957508e+09,NULL,'ok','{"a":2,"b":3}','5',NULL,0,1,NULL,NULL);
INSERT INTO "ticket" VALUES(12,1,'tool_call','pay','pay {"amount":7}',1,NULL,1.79571204803806400303e+09,4,NULL,NULL,NULL,NULL,NULL,NULL,1,1,NULL,NULL);
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
CREATE INDEX ticket_parked ON ticket (opened_at) WHERE parked;
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
    CASE WHEN ticket.outcome = 'cancelled' THEN
            coalesce(ticket.text, CASE completed.data ->> '$.outcome'
                WHEN 'not_begun' THEN 'cancelled before it began: it had no effect'
                ELSE 'cancelled under way: whether it took effect is not known' END)
        WHEN ticket.outcome <> 'ok' THEN
        coalesce(ticket.text, completed.data ->> ('$.outcome.' || ticket.outcome || '.message')) END AS error,
    ticket.opened_at,
    ticket.completed_at,
    ticket.parked,
    ticket.attempts,
    ticket.approval_reason
FROM ticket
JOIN run ON run.key = ticket.run
LEFT JOIN event AS opened ON opened.run = ticket.run AND opened.seq = ticket.opened_seq
LEFT JOIN event AS completed ON completed.run = ticket.run AND completed.seq = ticket.completed_seq
LEFT JOIN blob ON blob.key = coalesce(ticket.blob, completed.blob);
CREATE INDEX run_content_content ON run_content (content);
COMMIT;
