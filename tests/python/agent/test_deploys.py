"""Runs that a later version of their agent continues, with more tools and with wider ones."""

import asyncio
import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from typing import Annotated, Literal, TypedDict

import pytest
from pydantic import Field

from callslip import (
    Agent,
    Context,
    ScriptedModel,
    TicketStore,
    Tool,
    UsageError,
    ask_user,
    replay,
    tool,
)
from scripted import act, block, finish

BASE = {
    "type": "object",
    "additionalProperties": False,
    "properties": {
        "amount": {"type": "integer", "maximum": 900},
        "kind": {"enum": ["a", "b"], "default": "a"},
    },
    "required": ["amount"],
}
OPEN = {key: value for key, value in BASE.items() if key != "additionalProperties"}

paid: list[object] = []


@pytest.fixture
def store(path):
    with TicketStore(path) as store:
        yield store


@pytest.fixture(autouse=True)
def _nothing_paid():
    paid.clear()


def give(amount, kind="a", memo="none"):
    paid.append((amount, kind, memo))
    return f"paid {amount}"


def pay(parameters=BASE, **options):
    options = {"needs_approval": True, "description": "Pay.", **options}
    return Tool.from_schema(give, name="pay", parameters=parameters, **options)


def with_properties(base=BASE, **properties):
    return {**base, "properties": {**base["properties"], **properties}}


@tool
def look(x: int) -> str:
    """Look."""
    return f"seen {x}"


@tool
def ping() -> str:
    """Ping."""
    return "pong"


def ask_first(arguments, context):
    return arguments["x"] > 1


STEPS = [act("pay", amount=5, kind="b"), act("look", x=1), finish("done")]


def begun(store, tools, *, steps=STEPS, until="ticket_opened", times=1, answer=None, **options):
    """Return the id of a run whose process has ended after an event of this kind."""
    with TicketStore() as before:
        agent = Agent(ScriptedModel(steps), tools=tools, store=before, **options)
        run = agent.run_sync("Pay.", approve=lambda ticket: True, answer=answer).run
        lines = run.export().splitlines()
    paid.clear()
    ends = [at for at, line in enumerate(lines, 1) if f'"event":{{"{until}"' in line]
    return store.import_run(lines[: ends[times - 1]])


def successor(store, tools, replies=STEPS[1:], **options):
    return Agent(ScriptedModel(replies), tools=tools, store=store, **options)


memo = {"type": "string"}
number = {"type": "number", "maximum": 900}
TAKEN = {
    "the same": [pay(), look],
    "a tool more": [ping, pay(), look],
    "an optional parameter more": [pay(with_properties(memo=memo)), look],
    "an optional parameter with a default": [
        pay(with_properties(memo={**memo, "default": "none"})),
        look,
    ],
    "words of a parameter": [
        pay(with_properties(amount={"type": "integer", "maximum": 900, "description": "In euros"})),
        look,
    ],
    "words of a tool": [pay(description="Pay someone."), look],
    "a wider bound": [pay(with_properties(amount={"type": "integer", "maximum": 9000})), look],
    "no bound": [pay(with_properties(amount={"type": "integer"})), look],
    "a value more": [pay(with_properties(kind={"enum": ["a", "b", "c"], "default": "a"})), look],
    "integer to number": [pay(with_properties(amount=number)), look],
    "null as well": [
        pay(with_properties(amount={"anyOf": [{"type": "integer"}, {"type": "null"}]})),
        look,
    ],
    "not required": [pay({**BASE, "required": []}), look],
    "left open": [pay(OPEN), look],
    "readonly and repeatable": [pay(), Tool(look._function, readonly=True, repeatable=True)],
    "retries and a timeout": [pay(), Tool(look._function, retries=3, timeout=9, concurrency=1)],
    "another order": [look, pay()],
}


@pytest.mark.parametrize("sync", [True, False], ids=["sync", "async"])
@pytest.mark.parametrize("tools", TAKEN.values(), ids=TAKEN)
def test_what_takes_all_calls_of_a_run_continues_it(store, tools, sync):
    run_id = begun(store, [pay(), look])
    agent = successor(store, tools)
    assert agent.check(store.run(run_id)) == []
    assert agent.check(store) == []
    store.run(run_id).approve("T1")
    result = agent.resume_sync(run_id) if sync else asyncio.run(agent.resume(run_id))
    assert result.value == "done"
    assert paid == [(5, "b", "none")]
    # What is new is not offered.
    for request in agent.model.requests:
        told = request.messages[0]["content"]
        assert "ping" not in told
        assert "memo" not in told
    assert replay(store.run(run_id)).stop_reason == "finished"


REFUSED = {
    "a tool gone": ([pay()], ["the tool 'look' is gone: keep it"]),
    "a parameter gone": (
        [pay({**BASE, "properties": {"amount": BASE["properties"]["amount"]}}), look],
        ["the tool 'pay' takes less: /kind is gone: take it"],
    ),
    "a required parameter": (
        [pay({**with_properties(memo=memo), "required": ["amount", "memo"]}), look],
        ["/memo is required now: make it optional"],
    ),
    "a closer bound": (
        [pay(with_properties(amount={"type": "integer", "maximum": 9})), look],
        ["/amount has maximum 9 now, and 900 in the run: take what it took"],
    ),
    "a value less": (
        [pay(with_properties(kind={"enum": ["a"], "default": "a"})), look],
        ['/kind takes no "b" any more: take that too'],
    ),
    "number to text": (
        [pay(with_properties(amount={"type": "string"})), look],
        ["/amount takes no integer any more: take that too"],
    ),
    "another default": (
        [pay(with_properties(kind={"enum": ["a", "b"], "default": "b"})), look],
        ['/kind is "b" where a call leaves it out, and "a" in the run: keep that'],
    ),
    "a pattern": (
        [pay(with_properties(kind={**BASE["properties"]["kind"], "pattern": "a"})), look],
        ["/kind has another 'pattern'"],
    ),
    "an unknown keyword": (
        [pay(with_properties(amount={**BASE["properties"]["amount"], "x-unit": "EUR"})), look],
        ["/amount has another 'x-unit'", "keep that"],
    ),
    "another effect": (
        [pay(effect="idempotent"), look],
        ["has the effect 'idempotent' now, and 'once' in the run: keep effect='once'"],
    ),
    "a reconcile": (
        [pay(reconcile=lambda context: None), look],
        ["the tool 'pay' has a reconcile now"],
    ),
    "less approval": (
        [pay(needs_approval=False), look],
        ["needs no approval now, and always needs approval in the run: keep needs_approval"],
    ),
    "approval by a function": (
        [pay(needs_approval=lambda arguments, context: False), look],
        ["lets a function decide on approval now"],
    ),
    "an agent in its place": (
        [pay(), Agent(ScriptedModel([]), name="look").as_tool(name="look")],
        ["the tool 'look' is an agent now, and a function in the run: give it another name"],
    ),
    "results from outside in its place": (
        [pay(), tool(external=True)(look._function)],
        ["the tool 'look' is external now, and called in the run: give it another name"],
    ),
    "everything at once": (
        [
            pay(
                {**BASE, "properties": {}, "required": ["memo"]},
                effect="pure",
                needs_approval=False,
            )
        ],
        [
            "'look' is gone",
            "the effect 'pure'",
            "needs no approval",
            "/amount is gone",
            "/kind is gone",
            "/memo is required now",
        ],
    ),
}


@pytest.mark.parametrize(("tools", "why"), REFUSED.values(), ids=REFUSED)
def test_what_takes_less_is_refused_with_every_difference(store, tools, why):
    run_id = begun(store, [pay(), look])
    before = store.run(run_id).export()
    agent = successor(store, tools)
    with pytest.raises(UsageError, match="can't be resumed by this agent: ") as caught:
        agent.resume_sync(run_id)
    found = agent.check(store.run(run_id))
    for part in why:
        assert part in str(caught.value)
        assert part in "; ".join(found)
    assert "call agent.hand_over(run)" in str(caught.value)
    assert agent.check(store) == [f"run {run_id} can't go on: {'; '.join(found)}"]
    # Nothing was lost by trying.
    assert store.run(run_id).export() == before
    assert paid == []
    same = successor(store, [pay(), look])
    assert same.resume_sync(run_id, approve=lambda ticket: True).value == "done"


def pick(returns=None, **options):
    parameters = {"properties": {"title": {"type": "string"}}}
    return Tool.from_schema(
        None,
        external=True,
        name="pick",
        description="Let the user pick.",
        parameters=parameters,
        returns=returns,
        **options,
    )


COLOURS = {"enum": ["red", "blue"]}
QUESTION = [act("ask_user", question="Which?", choices=["red"]), finish("done")]
FROM_OUTSIDE = {
    "the same": (pick(COLOURS), pick(COLOURS), None),
    "any result": (pick(), pick(), None),
    "a result more": (pick(COLOURS), pick({"enum": ["red", "blue", "green"]}), None),
    "any result now": (pick(COLOURS), pick(), None),
    "a timeout": (pick(COLOURS), pick(COLOURS, timeout=60), None),
    "a question": (ask_user, ask_user, None),
    "a result less": (
        pick(COLOURS),
        pick({"enum": ["red"]}),
        "the tool 'pick' takes fewer results: ",
    ),
    "another type": (pick({"type": "integer"}), pick(COLOURS), "takes fewer results: "),
    "a type for any result": (pick(), pick(COLOURS), "takes fewer results: "),
    "a call": (
        pick(),
        Tool.from_schema(
            lambda title="": "red",
            name="pick",
            description="Pick.",
            parameters={"properties": {"title": {"type": "string"}}},
        ),
        "the tool 'pick' is called now, and external in the run: give it another name",
    ),
    "no question": (
        ask_user,
        tool(external=True, name="ask_user")(ask_user._function),
        "doesn't ask for one of its choices now, and asks in the run",
    ),
}


@pytest.mark.parametrize(("kept", "offered", "why"), FROM_OUTSIDE.values(), ids=FROM_OUTSIDE)
def test_results_from_outside_are_compared_as_calls_are(store, kept, offered, why):
    steps = QUESTION if kept is ask_user else [act("pick", title="x"), finish("done")]
    run_id = begun(store, [kept], steps=steps, answer=answer_of)
    agent = successor(store, [offered], steps[1:])
    if why is not None:
        with pytest.raises(UsageError, match="can't be resumed by this agent: ") as caught:
            agent.resume_sync(run_id)
        assert why in str(caught.value)
        agent = successor(store, [kept], steps[1:])
    run = store.run(run_id)
    assert [ticket.awaiting for ticket in run.tickets] == ["result"]
    run.answer("T1", answer_of(run.tickets[0]))
    assert agent.resume_sync(run_id).value == "done"


def answer_of(ticket):
    return 1 if ticket.answers == {"type": "integer"} else "red"


def test_a_parameter_in_an_open_object_may_have_meant_something_else(store):
    run_id = begun(store, [pay(OPEN)], steps=[STEPS[0], STEPS[2]])
    agent = successor(store, [pay(with_properties(OPEN, memo=memo))])
    assert agent.check(store.run(run_id)) == [
        "the tool 'pay' takes less: /memo is new, and calls of the run may give anything under "
        "that name: use another tool for it"
    ]


class Line(TypedDict):
    item: str
    count: int


class LongerLine(Line, total=False):
    note: str


def test_functions_are_compared_by_their_types(store):
    @tool
    def order(lines: list[Line], kind: Literal["a", "b"], most: int = 3) -> str:
        """Order."""
        return "ordered"

    run_id = begun(store, [order], steps=[act("order", lines=[], kind="a"), finish("done")])
    same = order

    @tool
    def order(
        lines: list[LongerLine],
        kind: Literal["a", "b", "c"],
        most: Annotated[float, Field(description="How many")] = 3,
        hint: str | None = None,
    ) -> str:
        """Order more."""
        return "ordered"

    assert successor(store, [order]).check(store.run(run_id)) == []
    later = begun(store, [order], steps=[act("order", lines=[], kind="c"), finish("done")])
    found = "; ".join(successor(store, [same]).check(store.run(later)))
    for part in ("/hint is gone", '/kind takes no "c"', "/most takes no number", "/note is gone"):
        assert part in found


class Prices(TypedDict):
    by_size: dict[int, int]


def taking(kind):
    def order(value: kind) -> str:
        """Order."""
        return "ordered"

    order.__annotations__["value"] = kind
    return tool(order)


TYPES = {
    "text": (str, "a"),
    "a decimal": (Decimal, "1.5"),
    "an integer": (int, 1),
    "a float or text": (float | str, "a"),
    "texts": (list[str], ["a"]),
    "decimals": (list[Decimal], ["1.5"]),
    "keys that are text": (dict[str, int], {"a": 1}),
    "keys that are whole numbers": (dict[int, int], {"1": 1}),
    "keys that are decimals": (dict[Decimal, int], {"1.5": 1}),
    "keys that are dates": (dict[date, int], {"2024-02-29": 1}),
    "keys in an object": (Prices, {"by_size": {"1": 1}}),
    "decimals by numbers": (dict[int, Decimal], {"1": "1.5"}),
}
WIDER = {
    ("text", "a float or text"),
    ("an integer", "a decimal"),
    ("an integer", "a float or text"),
    ("keys that are whole numbers", "decimals by numbers"),
}
"""Pairs whose second type takes what the first takes, and means the same by it."""


@pytest.mark.parametrize("before", TYPES)
def test_types_that_look_alike_are_told_apart(store, before):
    kind, value = TYPES[before]
    run_id = begun(store, [taking(kind)], steps=[act("order", value=value), finish("done")])
    for after, (now, _) in TYPES.items():
        found = successor(store, [taking(now)]).check(store.run(run_id))
        assert (before, after, found == []) == (
            before,
            after,
            before == after or (before, after) in WIDER,
        ), found


def test_it_says_how_a_value_was_read(store):
    run_id = begun(store, [taking(str)], steps=[act("order", value="a"), finish("done")])
    (found,) = successor(store, [taking(Decimal)]).check(store.run(run_id))
    assert "/value is read as a decimal now, and as it is written in the run: keep that" in found
    assert "reads" not in json.dumps(taking(Decimal).parameters)


def test_runs_of_earlier_versions_do_not_say_how_they_read_values(store):
    run_id = begun(store, [taking(Decimal)], steps=[act("order", value="1.5"), finish("done")])
    log = store.run(run_id).export()
    first, rest = log.split("\n", 1)
    earlier = json.loads(first)
    started = earlier["event"]["run_started"]
    started["version"] = 8
    (order,) = started["setup"]["tools"]["tools"]
    assert order.pop("reads")
    with TicketStore() as other:
        other.import_run(f"{json.dumps(earlier)}\n{rest}", trust=True)
        for kind in (Decimal, str | float):
            assert successor(other, [taking(kind)]).check(other.run(run_id)) == []


def test_the_type_of_an_answer_may_take_more(store):
    run_id = begun(store, [look], steps=[act("look", x=1), finish(4)], returns=int)
    assert successor(store, [look], [finish(4)], returns=str).check(store.run(run_id)) != []
    assert successor(store, [look], [finish(4)], returns=float).resume_sync(run_id).value == 4


# More approval.


@pytest.mark.parametrize("how", [True, ask_first], ids=["needed", "checked"])
def test_more_approval_holds_from_the_next_call_on(store, how):
    steps = [act("look", x=1), act("look", x=2), finish("done")]
    run_id = begun(store, [look], steps=steps, until="model_asked", times=2)
    stricter = Tool(look._function, needs_approval=how)
    asked = []

    def approve(ticket):
        asked.append(ticket.arguments)
        return True

    agent = successor(store, [stricter], steps[1:])
    result = agent.resume_sync(run_id, approve=approve)
    assert result.value == "done"
    assert asked == [{"x": 2}]
    noted = [event for event in result.run.log if event.kind == "noted"]
    expected = "needed" if how is True else "checked"
    assert [(one.note, one.approval) for one in noted] == [
        ("resumed", {}),
        ("more_approval", {"look": expected}),
    ]
    assert replay(store.run(run_id)).stop_reason == "finished"


def test_more_approval_holds_in_the_next_turn_of_a_conversation(store):
    steps = [act("look", x=1), finish("done")]
    first = successor(store, [look], steps).run_sync("Look.").run
    stricter = Tool(look._function, needs_approval=True)
    asked = []
    agent = successor(store, [stricter], [act("look", x=2), finish("again")])

    async def go_on():
        run = agent.start(run=first.id, say="Look again.")
        while not run.awaiting_approval:
            await asyncio.sleep(0.001)
        asked.extend(ticket.arguments for ticket in run.awaiting_approval)
        run.approve("T2")
        return await run

    result = asyncio.run(go_on())
    assert (result.value, asked) == ("again", [{"x": 2}])
    assert replay(store.run(first.id)).stop_reason == "finished"


@pytest.mark.parametrize("chunk", [None, 3], ids=["whole", "streamed"])
def test_more_approval_holds_for_calls_that_start_early_or_are_filled_later(store, chunk):
    @tool(readonly=True)
    def number() -> int:
        """Return a number."""
        return 2

    kept = Tool(look._function, readonly=True)
    steps = [
        block(("a", "look", {"x": 1})),
        block(("b", "number", {}), ("c", "look", {"x": "$b"}), ("d", "look", {"x": 3})),
        "done",
    ]
    options = {"protocol": "chatty"}
    tools = [number, kept]
    run_id = begun(store, tools, steps=steps, until="model_asked", times=2, **options)
    asked = []
    stricter = Tool(look._function, readonly=True, needs_approval=True)
    model = ScriptedModel(steps[1:], chunk_size=chunk)
    agent = Agent(model, tools=[number, stricter], store=store, **options)
    result = agent.resume_sync(run_id, approve=lambda one: asked.append(one.arguments) or True)
    assert result.value == "done"
    assert sorted(one["x"] for one in asked) == [2, 3]
    assert [ticket.result for ticket in result.tickets] == ["seen 1", 2, "seen 2", "seen 3"]
    assert replay(store.run(run_id)).stop_reason == "finished"


def test_more_approval_is_kept_by_whatever_resumes_the_run(store):
    steps = [act("look", x=1), act("look", x=2), act("look", x=3), finish("done")]
    run_id = begun(store, [look], steps=steps, until="model_asked", times=2)
    stricter = Tool(look._function, needs_approval=True)
    result = successor(store, [stricter], steps[1:]).resume_sync(run_id, approve=lambda one: True)
    lines = result.run.export().splitlines()
    end = next(at for at, line in enumerate(lines) if '"ticket_completed":{"ticket":2' in line) + 1
    for compacted in (False, True):
        with TicketStore() as other:
            other.import_run(lines[:end])
            if compacted:
                other.compact(run_id)
            lax = successor(other, [look], steps[2:])
            assert "needs no approval now, and always needs" in lax.check(other.run(run_id))[0]
            asked = []
            agent = successor(other, [stricter], steps[2:])
            agent.resume_sync(run_id, approve=lambda one, asked=asked: asked.append(one.id) or True)
            assert asked == ["T3"]


def test_a_run_that_goes_on_with_other_tools_can_be_killed_anywhere(store):
    """Its log, cut after any event, goes on to the same end, and no call is made twice."""
    steps = [act("look", x=1), act("work", n=1), act("work", n=2), finish("done")]
    did = []

    def work(n: int, context: Context) -> str:
        """Work."""
        did.append((n, context.key))
        return f"worked {n}"

    before = [look, Tool(work, effect="pure")]
    after = [ping, Tool(look._function, needs_approval=True), Tool(work, effect="pure", retries=2)]
    run_id = begun(store, before, steps=steps, until="model_asked", times=2)
    approve = {"approve": lambda ticket: True}
    whole = successor(store, after, steps[1:]).resume_sync(run_id, **approve).run
    assert replay(whole).stop_reason == "finished"
    lines = whole.export().splitlines()
    resumed = next(at for at, line in enumerate(lines) if '"resumed"' in line)
    for cut in range(resumed + 1, len(lines)):
        did.clear()
        with TicketStore() as other:
            other.import_run(lines[:cut])
            replies = sum('"model_replied"' in line for line in lines[:cut])
            result = successor(other, after, steps[replies:]).resume_sync(run_id, **approve)
            assert result.value == "done"
            assert [ticket.outcome for ticket in result.tickets] == ["ok"] * 3
            assert len({key for _, key in did}) == len(did)
            approvals = [e.approval for e in result.run.log if getattr(e, "approval", None)]
            assert approvals == [{"look": "needed"}]


# What a run may look up, and the runs below it.


def test_tools_are_looked_up_among_those_of_the_run(store):
    def tools(words):
        return [
            Tool(lambda: "x", name=f"tool_{n}", description=f"Do {n}. {words}") for n in range(400)
        ]

    many = tools("In many words. " * 20)
    secret = Tool(lambda: "x", name="brand_new", description="Do something brand new.")
    steps = [act("search_tools", query="brand new"), finish("done")]
    run_id = begun(store, many, steps=steps, until="model_asked")
    for now in ([*many, secret], tools(""), [secret, *tools("")]):
        with TicketStore() as other:
            other.import_run(store.run(run_id).export().splitlines())
            result = successor(other, now, steps).resume_sync(run_id)
            assert result.tickets[0].outcome == "ok"
            assert "brand_new" not in str(result.tickets[0].result)


def boss(store, helper_tools, replies):
    helper = Agent(ScriptedModel(replies), tools=helper_tools, name="helper", store=store)
    asking = ScriptedModel([act("ask", task="Pay."), finish("ok")])
    return Agent(asking, tools=[helper.as_tool(name="ask")], store=store, name="boss")


def test_runs_below_go_on_by_the_same_rule(store):
    async def parked():
        agent = boss(store, [pay(), look], STEPS)
        run = agent.start("Delegate.")
        while not any(child.awaiting_approval for child in run.children):
            await asyncio.sleep(0.001)
        return run.id, [one.export() for one in (run, *run.children)]

    run_id, exports = asyncio.run(parked())
    with TicketStore() as other:
        for export in exports:
            other.import_run(export.splitlines())
        less = boss(other, [pay()], STEPS[1:])
        found = less.check(other.run(run_id))
        gone = "the tool 'look' is gone: keep it until the runs that have it are over"
        assert found == [f"its child run {run_id}.T1: {gone}"]
        assert less.check(other) == [f"run {run_id} can't go on: {found[0]}"]
        with pytest.raises(UsageError, match="'look' is gone"):
            less.resume_sync(run_id)
        more = boss(other, [pay(with_properties(memo=memo)), look, ping], STEPS[1:])
        assert more.check(other) == []


# The command, and what check takes.


def test_check_takes_runs_and_stores():
    for wrong in ("runs.sqlite", None, 3):
        with pytest.raises(UsageError, match="expected a run or a store to check: got .*; pass"):
            successor(None, [look]).check(wrong)


def test_check_passes_over_other_agents_and_finished_runs(store):
    begun(store, [pay(), look], name="other")
    successor(store, [look], [finish("done")]).run_sync("Nothing.")
    assert successor(store, [ping]).check(store) == []


APP = """
from callslip import Agent, ScriptedModel, tool

@tool
def look(x: int) -> str:
    "Look."
    return "seen"

@tool
def ping() -> str:
    "Ping."
    return "pong"

good = Agent(ScriptedModel([]), tools=[look, ping], name="desk")
bad = Agent(ScriptedModel([]), tools=[ping], name="desk")
other = 3
"""


def test_the_command_checks_a_store_that_is_in_use(tmp_path):
    (tmp_path / "app.py").write_text(APP, "utf-8")
    path = tmp_path / "runs.sqlite"

    def check(name):
        command = [sys.executable, "-m", "callslip", "check", f"app:{name}", str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        return done.returncode, done.stdout + done.stderr

    with TicketStore(path) as store:
        steps = [act("look", x=1), finish("done")]
        run_id = begun(store, [look], steps=steps, name="desk")
        store.run(run_id).export()
        assert check("good") == (0, "desk can continue all its open runs: 1\n")
        status, said = check("bad")
        assert status == 1
        assert said.startswith(f"run {run_id} can't go on: the tool 'look' is gone: keep it")
        status, said = check("other")
        assert status == 2
        assert "expected app:other to be an Agent: got int" in said
