"""Options of a wrong type are refused where they are passed, with what to pass."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Limits,
    ReactProtocol,
    Role,
    TicketProtocol,
    TicketStore,
    UsageError,
    replay,
)
from scripted import finish

ANSWER = finish("done")


def say(messages):
    return ANSWER


def of_two(first, second):
    return None


def of_none():
    return None


AGENT = [
    ({"stop": "END"}, r"expected stop as a list of texts: got 'END': pass \['END'\]"),
    ({"stop": [3]}, "expected stop as a list of texts"),
    ({"stop": None}, "expected stop as a list of texts"),
    ({"limits": 5}, r"expected limits=Limits\(…\): got 5"),
    ({"limits": {}}, r"expected limits=Limits\(…\): got \{\}"),
    ({"delegate": "no"}, "expected delegate=True or False: got 'no'"),
    ({"grammar": "gbnf"}, "expected grammar=True or False"),
    ({"seed": "x"}, "expected seed=a whole number or None: got 'x'"),
    ({"seed": True}, "expected seed=a whole number or None: got True"),
    ({"max_tokens": "x"}, "expected max_tokens to be a whole number from 1"),
    ({"max_tokens": -1}, "expected max_tokens to be a whole number from 1"),
    ({"store": 5}, "expected store as a TicketStore, the path of a file or the URL of a database"),
    ({"store": b"x"}, "expected store as a TicketStore"),
    ({"store": "redis://x"}, "that begins with postgresql://: got redis://…"),
    ({"check_task": of_none}, "expected check_task to take the task and the Context"),
    ({"check_answer": of_none}, "expected check_answer to take the answer and the Context"),
    ({"check_answer": "x"}, "expected check_answer to be a function: got 'x'"),
    ({"instructions": of_none}, "expected instructions to take the Context"),
    ({"instructions": of_two}, "expected instructions to take the Context"),
]

LIMITS = [
    ({"turns": "5"}, r"expected Limits\(turns=…\) to be a whole number from 0 to .*: got '5'"),
    ({"turns": 1.5}, "a whole number from 0 to .*, or None for no limit: got 1.5"),
    ({"turns": True}, "a whole number"),
    ({"turns": 2**40}, "a whole number from 0 to 4,294,967,295"),
    ({"tokens": 1.5}, "a whole number"),
    ({"seconds": "1"}, r"expected Limits\(seconds=…\) to be a number from 0, or None for no limit"),
    ({"seconds": timedelta(1)}, "a number from 0"),
    ({"seconds": float("nan")}, "a number from 0"),
    ({"seconds": float("inf")}, "a number from 0, or None for no limit"),
    ({"reply_bytes": None}, r"a whole number from 0 to [0-9,]+: got None"),
    ({"reply_bytes": float("inf")}, r"a whole number from 0 to [0-9,]+: got inf"),
    ({"max_violations": None}, "a whole number"),
    ({"json_depth": 5000}, "a whole number from 0 to 1,024: got 5000"),
    ({"json_digits": -1}, "a whole number from 0"),
]

PROTOCOLS = [
    (ReactProtocol, {"reasoning_tags": "musing"}, "expected reasoning_tags as a list"),
    (ReactProtocol, {"reasoning_tags": [("a",)]}, "expected reasoning_tags to be names, or pairs"),
    (ReactProtocol, {"reasoning_tags": [3]}, "expected reasoning_tags to be names, or pairs"),
    (ReactProtocol, {"reasoning_tags": ["<x>"]}, "the name of a tag in reasoning_tags"),
    (ReactProtocol, {"reasoning_tags": [("x", "x")]}, "two different marks"),
    (ReactProtocol, {"template": 3}, "expected template=its text, or the Path of a file: got 3"),
    (ReactProtocol, {"strict": "x"}, "expected strict=True or False"),
    (ReactProtocol, {"lenient": 1}, "expected lenient=True or False"),
    (ReactProtocol, {"think_prefilled": "x"}, "expected think_prefilled=True or False"),
    (ReactProtocol, {"early_stop": "x"}, "expected early_stop=True or False"),
    (ReactProtocol, {"first_move": "x"}, "expected first_move='any' or 'call'"),
    (ReactProtocol, {"thoughts": -1}, "expected thoughts to be a whole number from 0"),
    (ReactProtocol, {"tool_tokens": True}, "expected tool_tokens to be a whole number from 1"),
    (ChattyProtocol, {"tool_tag": ""}, "the name of a tag in tool_tag, without brackets and"),
    (ChattyProtocol, {"tool_tag": "x y"}, "the name of a tag in tool_tag"),
    (ChattyProtocol, {"tool_tag": "<tool>"}, "the name of a tag in tool_tag"),
    (ChattyProtocol, {"tool_tag": "tool\n"}, "the name of a tag in tool_tag"),
    (ChattyProtocol, {"tool_tag": 3}, "expected tool_tag to be"),
    (ChattyProtocol, {"tool_tag": ("a", "a")}, "two different marks"),
    (ChattyProtocol, {"early_start": "x"}, "expected early_start=True or False"),
    (TicketProtocol, {"grace": "x"}, "expected grace to be a number of seconds from 0: got 'x'"),
    (TicketProtocol, {"grace": None}, "expected grace to be a number of seconds"),
    (TicketProtocol, {"grace": -1}, "expected grace to be a number of seconds"),
    (TicketProtocol, {"grace": float("nan")}, "expected grace to be a number of seconds"),
    (TicketProtocol, {"await_loads": "x"}, "expected await_loads=True or False"),
    (TicketProtocol, {"inline_results": 0}, "expected inline_results=True or False"),
]

ROLES = [
    ({"model": 3}, "model"),
    ({"protocol": "x"}, "expected protocol='ticket', 'chatty', 'react' or 'native'"),
    ({"tools": 3}, "tools"),
    ({"limits": 3}, r"expected limits=Limits\(…\): got 3"),
]


@pytest.mark.parametrize(("options", "says"), AGENT)
def test_options_of_an_agent(options, says):
    with pytest.raises(UsageError, match=says):
        Agent(say, **options)
    agent = Agent(say)
    with pytest.raises(UsageError, match=says), agent.override(**options):
        pass


@pytest.mark.parametrize(("options", "says"), LIMITS)
def test_limits(options, says):
    with pytest.raises(UsageError, match=says):
        Limits(**options)


@pytest.mark.parametrize("at_once", [0, "x", None, 1.5, True])
def test_runs_that_are_resumed_at_once(at_once, tmp_path):
    agent = Agent(say, store=tmp_path / "runs.sqlite")
    with pytest.raises(UsageError, match="^expected at_once to be a whole number from 1: got "):
        asyncio.run(agent.resume_all(at_once=at_once))


def test_a_protocol_of_another_type():
    for protocol in ([], {}, ["react"]):
        with pytest.raises(
            UsageError, match="^expected protocol='ticket', 'chatty', 'react' or 'native'"
        ):
            Agent(say, protocol=protocol)


def test_a_long_value_is_not_written_out():
    with pytest.raises(UsageError, match=f"got '{'x' * 199}…$"):
        Agent(say, delegate="x" * 5_000)
    with pytest.raises(UsageError, match=r"got \[0(, 0)+…$"):
        Agent(say, delegate=[0] * 5_000)


def test_limits_that_are_right():
    assert Limits(turns=0, tokens=2**40, seconds=1, cost=0.0, reply_bytes=2**40, json_depth=1024)


@pytest.mark.parametrize(("kind", "options", "says"), PROTOCOLS)
def test_options_of_a_protocol(kind, options, says):
    with pytest.raises(UsageError, match=says):
        kind(**options)


@pytest.mark.parametrize(("options", "says"), ROLES)
def test_settings_of_a_role(options, says):
    with pytest.raises(UsageError, match=says):
        Role(**options)


def test_stop_of_a_client_is_a_list_as_that_of_an_agent():
    heard = []

    def model(messages, *, stop):
        heard.append(stop)
        return ANSWER

    assert Agent(model, stop=("END", "\n\n")).run_sync("go").value == "done"
    assert heard == [["END", "\n\n"]]


@pytest.mark.parametrize("result", [False, True, "no"])
def test_a_check_of_the_task_that_returns_something(result):
    asked = []

    def model(messages):
        asked.append(messages)
        return ANSWER

    async def check(task, context):
        return result

    for one in (lambda task, context: result, check):
        with pytest.raises(UsageError, match="expected check_task to return None: got .* raise"):
            Agent(model, check_task=one).run_sync("go")
    assert asked == []


@pytest.mark.parametrize("how", ["run_sync", "stream_sync", "resume_sync"])
def test_an_approver_of_other_arguments(how, tmp_path):
    agent = Agent(say, store=tmp_path / "runs.sqlite")
    run_id = agent.run_sync("go").run.id
    with pytest.raises(UsageError, match="expected approve to take the Ticket"):
        done = getattr(agent, how)(run_id, approve=of_none)
        list(done)


STORE = [
    (lambda store, run: store.run(run), r"the id of a run as text: got .*: pass its \.id"),
    (lambda store, run: store.run(3), "the id of a run as text: got 3"),
    (lambda store, run: store.run(store.runs()[0]), r"pass its \.run_id"),
    (lambda store, run: store.delete(run), r"pass its \.id"),
    (lambda store, run: store.compact(3), "the id of a run as text"),
    (lambda store, run: store.watch(3), "the id of a run as text"),
    (lambda store, run: Agent(say, store=store).resume_sync(None), "the id of a run as text"),
    (lambda store, run: Agent(say, store=store).resume_sync(run), r"pass its \.id"),
    (lambda store, run: store.runs(limit="x"), "limit to be a whole number from 0"),
    (lambda store, run: store.runs(agent=3), "expected agent to be text: got 3"),
    (lambda store, run: store.runs(since="x"), "since to be a time in Unix seconds"),
    (
        lambda store, run: store.runs(until=datetime.now(UTC)),
        "until to be a time in Unix seconds",
    ),
    (lambda store, run: store.tickets(awaiting_approval="x"), "awaiting_approval=True or False"),
    (lambda store, run: store.tickets(kind="x"), "expected kind='tool_call' or 'task'"),
    (lambda store, run: store.tickets(run=run), "expected run to be text"),
    (lambda store, run: store.prune(older_than="x"), "older_than to be a number of seconds"),
    (lambda store, run: store.prune(keep=1.5), "keep to be a whole number from 0"),
    (lambda store, run: store.to_html(limit="x"), "limit to be a whole number"),
    (lambda store, run: store.query("SELECT ? a, ? b", "xy"), "parameters as a list of values"),
    (lambda store, run: store.query("SELECT :a a", {"a": 1}), "in the order of the placeholders"),
    (lambda store, run: store.query("SELECT ? a", [object()]), "as a parameter: got object"),
    (lambda store, run: store.query(3), "expected sql to be text"),
    (lambda store, run: store.import_run(3), "expected a log as JSON lines"),
    (lambda store, run: replay(3), "expected a log as JSON lines"),
    (lambda store, run: TicketStore(3), "expected path=the path of a file or the URL"),
    (lambda store, run: TicketStore("mysql://x/y"), "begins with postgresql://: got mysql://…"),
    (lambda store, run: TicketStore("sqlite:///x.db"), "begins with postgresql://: got sqlite://…"),
]


@pytest.mark.parametrize(("use", "says"), STORE)
def test_arguments_of_a_store(use, says, tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        run = Agent(say, store=store).run_sync("go").run
        before = set(tmp_path.iterdir())
        with pytest.raises(UsageError, match=says):
            use(store, run)
        assert set(tmp_path.iterdir()) == before
        assert len(store.runs()) == 1


def test_a_query_takes_lists_and_tuples(tmp_path):
    with TicketStore(tmp_path / "runs.sqlite") as store:
        for parameters in ([1, "x"], (1, "x")):
            assert store.query("SELECT ? AS a, ? AS b", parameters) == [{"a": 1, "b": "x"}]


def test_a_depth_is_refused_with_the_bound_that_holds():
    reply = json_of_depth(1200)
    for limits, most in ((Limits(json_depth=1024), 1024), (Limits(json_depth=7), 7)):
        violation = ReactProtocol().parse(reply, limits=limits).violation
        assert f"expected at most {most} brackets" in violation.message


def json_of_depth(depth):
    return '{"thought": "t", "action": "FINISH", "final_answer": ' + "[" * depth + "]" * depth + "}"
