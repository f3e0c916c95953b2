"""Examples of whole runs as messages, between the system prompt and the task."""

import json
from typing import Annotated, Literal

import pytest
from pydantic import Field

from callslip import (
    Agent,
    ChattyProtocol,
    Fallback,
    KeepLast,
    Move,
    ReactProtocol,
    ScriptedModel,
    TemplateError,
    TicketProtocol,
    TicketStore,
    replay,
    tool,
)
from scripted import asked, block, finish, give, results_of

KINDS = {"ticket": TicketProtocol, "chatty": ChattyProtocol, "react": ReactProtocol}
END = {"ticket": give("done"), "chatty": "done", "react": finish("done")}
OWN = [
    {"role": "user", "content": "What is the tide at Ystad?"},
    {"role": "assistant", "content": "It is low."},
]


@tool(readonly=True)
def tide(harbour: str) -> str:
    """Tell the tide in a harbour."""
    return "high"


def contents(result):
    return [message["content"] for message in result.messages]


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
def test_a_run_begins_with_an_example_of_its_own_tool(protocol):
    kind = KINDS[protocol](examples=True)
    result = Agent(lambda _: END[protocol], protocol=kind, tools=[tide]).run_sync("the task")
    shown = list(result.messages)
    roles = [message["role"] for message in shown]
    assert roles == ["system", *["user", "assistant"] * (5 if protocol == "chatty" else 3)]
    example = shown[-6:-2]
    move = kind.parse(example[1]["content"]).move
    assert isinstance(move, Move.Call)
    assert move.calls[0].tool == "tide"
    codes = [repair.code for repair in kind.parse(example[1]["content"]).repairs]
    assert codes == (["args_object"] if protocol == "react" else [])
    assert list(move.calls[0].arguments) == ["harbour"]
    end = kind.parse(example[3]["content"]).move
    assert isinstance(end, Move.Finish)
    told = example[2]["content"]
    assert "Wexcombe 8264" in told
    assert "Wexcombe 8264" in str(end.value)
    assert asked(result.messages)[0]["content"].startswith("the task")
    assert result.tickets == []


@pytest.mark.parametrize("protocol", ["ticket", "react"])
def test_an_example_writes_the_tool_down_before_its_arguments(protocol):
    @tool(readonly=True)
    def distance(start: str, end: str) -> float:
        """Tell the distance between two places."""
        return 1.0

    said = KINDS[protocol]().example_messages([tide, distance])
    assert "I call distance(start: str, end: str)." in said[1]["content"]


def test_a_reminder_stands_after_each_task_of_chatty():
    reminder = "Call a tool first if one of them can give the answer."
    agent = Agent(lambda _: "done", protocol=ChattyProtocol(examples=True), tools=[tide])
    result = agent.run_sync("the task")
    assert asked(result.messages)[0]["content"] == f"the task\n\n{reminder}"
    again = result.run.send_sync("more")
    assert again.messages[-2]["content"] == f"more\n\n{reminder}"
    for protocol in (
        ChattyProtocol(examples=OWN),
        ChattyProtocol(),
        ChattyProtocol(examples=False),
        ChattyProtocol(template="{TOOL_TAG_START}{TOOL_TAG_END} {AVAILABLE_TOOLS_INTERFACE}"),
    ):
        result = Agent(lambda _: "done", protocol=protocol, tools=[tide]).run_sync("the task")
        assert reminder not in str(contents(result))
    result = Agent(lambda _: "done", protocol="chatty").run_sync("the task")
    assert contents(result)[1] == "the task"


class Small:
    """A model that does as it has seen it done, and may be inside of another one."""

    needs_examples = True

    def __init__(self, reply):
        self.reply = reply

    def __call__(self, messages):
        return self.reply


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
def test_only_models_that_need_one_are_shown_an_example(protocol):
    small, large = Small(END[protocol]), lambda _: END[protocol]

    def shown(model, **options):
        made = KINDS[protocol](**options)
        return len(Agent(model, protocol=made, tools=[tide]).run_sync("the task").messages) > 3

    assert shown(small)
    assert shown(Fallback(large, small))
    assert shown(large, examples=True)
    assert not shown(large)
    assert not shown(Fallback(large, large))
    assert not shown(small, examples=False)
    assert KINDS[protocol]().example_messages([tide])


def test_the_protocol_of_an_agent_is_the_one_that_was_passed():
    protocol = ReactProtocol()
    agent = Agent(lambda _: finish("done"), protocol=protocol, tools=[tide])
    assert agent.protocol is protocol
    assert agent.replace(model=Small(finish("done"))).protocol is protocol
    assert len(agent.run_sync("x").messages) == 3
    assert len(agent.replace(model=Small(finish("done"))).run_sync("x").messages) == 7


@pytest.mark.parametrize("protocol", ["ticket", "chatty", "react"])
def test_examples_are_none_or_ones_own(protocol):
    kind = KINDS[protocol]
    for examples, more in ((False, []), ([], []), (OWN, [one["content"] for one in OWN])):
        agent = Agent(lambda _: END[protocol], protocol=kind(examples=examples), tools=[tide])
        said = contents(agent.run_sync("the task"))
        assert said[1:-2] == more
        assert said[-2].startswith("the task")


@pytest.mark.parametrize(
    ("kind", "template"),
    [
        (TicketProtocol, "Tools: {{tool_spec}}"),
        (ChattyProtocol, "{TOOL_TAG_START}{TOOL_TAG_END} {AVAILABLE_TOOLS_INTERFACE}"),
        (ReactProtocol, "{tools}"),
    ],
)
def test_a_template_has_the_example_too_unless_it_brings_its_own_or_none(kind, template):
    messages = 8 if kind is ChattyProtocol else 4
    assert len(kind(template=template).example_messages([tide])) == messages
    assert kind(template=template, examples=False).example_messages([tide]) == []
    assert kind(template=template, examples=OWN).example_messages([tide]) == OWN


@pytest.mark.parametrize("blank", ["", " "])
def test_the_example_writes_args_as_the_template_does(blank):
    def args(template):
        call = ReactProtocol(template=template).example_messages([tide])[1]["content"]
        return json.loads(call)["args"]

    assert args("{tools}") == {"harbour": "Marlowe"}
    assert args(f'{{tools}} {{{{"action": "x", "args"{blank}:{blank}{{{{}}}}}}}}') == {
        "harbour": "Marlowe"
    }
    assert args(f'{{tools}} {{{{"action": "x", "args"{blank}:{blank}"{{{{}}}}"}}}}') == (
        '{"harbour": "Marlowe"}'
    )


def test_an_example_of_tickets_that_are_loaded_shows_how():
    kind = TicketProtocol(inline_results=False)
    said = kind.example_messages([tide])
    moves = [kind.parse(one["content"]).move for one in said if one["role"] == "assistant"]
    assert [type(move) for move in moves] == [Move.Call, Move.Load, Move.Finish]
    assert "LOAD_TICKET T1" in said[2]["content"]
    assert "Wexcombe" not in said[2]["content"]


@pytest.mark.parametrize(
    ("examples", "said"),
    [
        ("an example", "str"),
        ([{"role": "user"}], "not a message with 'role' and 'content'"),
        ([{"role": "system", "content": "x"}], "instead of 'user'"),
        ([OWN[0], OWN[0]], "the role 'user' of message 2"),
        ([OWN[0]], "no reply to the last message"),
        ([{"role": "user", "content": 5}, OWN[1]], "5 as the content of message 1"),
    ],
)
def test_examples_that_are_none(examples, said):
    with pytest.raises(ValueError, match=r"expected examples=True, False or messages") as caught:
        ChattyProtocol(examples=examples)
    assert said in str(caught.value)


def example_of(*tools, **more):
    """The call of the last example: its tool and arguments."""
    protocol = ChattyProtocol(**more)
    messages = protocol.example_messages(tools)
    (made,) = protocol.parse(messages[-3]["content"]).move.calls
    return made.tool, made.arguments


def pair_of(*tools):
    """The arguments of both calls of the first example of chatty; `[]` where there is none."""
    protocol = ChattyProtocol()
    messages = protocol.example_messages(tools)
    if len(messages) < 8:
        return []
    task, reply, _, answer = (message["content"] for message in messages[:4])
    calls = protocol.parse(reply).move.calls
    assert task.startswith("Example: ")
    assert "(1)" in task
    assert "(2)" in task
    results = results_of(messages[2])
    assert list(results) == [call.call_id for call in calls]
    assert answer == f"The results are {' and '.join(results.values())}."
    # No result stands in both examples: a small model would take it for the answer to any task.
    alone = results_of(messages[6])
    assert len({*results.values(), *alone.values()}) == 3
    assert messages[7]["content"] == f"The result is {alone['call_1']}."
    return [call.arguments for call in calls]


def test_chatty_shows_two_calls_side_by_side_before_one():
    first, second = pair_of(tide)
    assert first["harbour"] != second["harbour"]
    model = ScriptedModel(
        [block(("a", "tide", first), ("b", "tide", second)), "done"],
    )
    result = Agent(model, protocol="chatty", tools=[tide]).run_sync(f"{first} {second}")
    assert [ticket.outcome for ticket in result.tickets] == ["ok", "ok"]


def test_both_calls_of_an_example_keep_to_the_schema():
    @tool
    def move(
        count: Annotated[int, Field(ge=40, le=49)],
        rate: Annotated[float, Field(gt=0, lt=1)],
        places: list[str],
        at: dict[str, str],
        kind: Literal["slow", "fast"],
    ) -> str:
        """Move."""
        return ""

    first, second = pair_of(move)
    assert (second["count"], second["rate"], second["kind"]) == (
        first["count"],
        first["rate"],
        first["kind"],
    )
    assert first["places"] != second["places"]


def test_a_tool_without_a_second_call_has_one_example():
    @tool(readonly=True)
    def mode(kind: Literal["slow", "fast"]) -> str:
        """Set the mode."""
        return ""

    @tool(readonly=True)
    def clock() -> str:
        """Tell the time."""
        return ""

    assert pair_of(mode) == pair_of(clock) == []
    assert len(ChattyProtocol().example_messages([mode])) == 4


def test_values_come_from_the_schema():
    @tool
    def book(  # one argument of each kind
        *,
        city: Annotated[str, Field(examples=["Turku", "Oulu"])],
        size: Literal["large", "small"],
        code: Annotated[str, Field(pattern="^[a-z]{2,20}$")],
        at: Annotated[str, Field(json_schema_extra={"format": "date"})],
        nights: Annotated[int, Field(ge=100, le=120)],
        extras: list[str],
        name: str,
        sums: Annotated[str, Field(pattern="^[0-9]{1,6} [-+*/] [0-9]{1,6}$")],
        quiet: bool,
        rate: float,
        note: str | None = None,
    ) -> str:
        """Book a room."""
        return ""

    name, values = example_of(book)
    assert name == "book"
    assert values["city"] == "Turku"
    assert values["size"] == "large"
    assert values["code"].islower()
    assert values["at"] == "1987-03-19"
    assert values["nights"] == 100
    assert len(values["extras"]) == 1
    assert values["sums"].split()[1] in "+-*/"
    assert values["quiet"] is True
    assert "note" not in values
    # What the example calls, the check lets pass.
    arguments = json.dumps(values)
    model = ScriptedModel(
        [f'<tool>[{{"call_id": "c", "tool_name": "book", "arguments": {arguments}}}]</tool>', "ok"]
    )
    result = Agent(model, protocol="chatty", tools=[book]).run_sync(f"Book {arguments}")
    assert result.tickets[0].outcome == "ok"


def test_the_tool_of_an_example_asks_nobody_and_changes_nothing_where_there_is_such_a_one():
    @tool(needs_approval=True)
    def pay(amount: int) -> str:
        """Pay."""
        return ""

    @tool
    def write(path: str) -> str:
        """Write."""
        return ""

    @tool(readonly=True)
    def clock() -> str:
        """Tell the time."""
        return ""

    assert example_of(pay, write, tide, clock)[0] == "tide"
    assert example_of(pay, write, clock)[0] == "write"
    assert example_of(pay)[0] == "pay"
    assert ChattyProtocol().example_messages([]) == []


def test_a_tool_that_nothing_fits_has_no_example():
    @tool
    def strange(code: Annotated[str, Field(pattern="^x{3}y{7}z$")]) -> str:
        """Do something strange."""
        return ""

    assert ChattyProtocol().example_messages([strange]) == []
    assert example_of(strange, tide)[0] == "tide"


def test_examples_stand_in_the_log(tmp_path):
    path = tmp_path / "runs.sqlite"

    def fails(_messages):
        raise RuntimeError("away")

    first = Agent(fails, protocol=ChattyProtocol(examples=OWN), tools=[tide], store=path)
    with pytest.raises(Exception, match="away") as caught:
        first.run_sync("the task")
    run_id = caught.value.run.id
    first.store.close()
    # The run goes on with the messages that it began with, whatever the agent would show now.
    with TicketStore(path) as store:
        model = ScriptedModel([block(("c", "tide", {"harbour": "Kiel"})), "done"])
        again = Agent(model, protocol="chatty", tools=[tide], store=store)
        result = again.resume_sync(run_id)
        assert contents(result)[1:4] == [*(one["content"] for one in OWN), "the task"]
        assert list(replay(result.run).messages) == list(result.messages)


def test_what_is_left_out_is_never_the_example():
    replies = [block((f"c{at}", "tide", {"harbour": f"H{at}"})) for at in range(4)]
    model = ScriptedModel([*replies, "done"])
    protocol = ChattyProtocol(examples=True)
    agent = Agent(model, protocol=protocol, tools=[tide], history=KeepLast(1))
    result = agent.run_sync("the task")
    last = model.requests[-1].messages
    assert [one["content"] for one in last[:9]] == contents(result)[:9]
    assert last[9]["content"].startswith("the task")
    assert "left out" in last[9]["content"]
    assert len(last) == 12


def test_chatty_tells_results_in_lines_that_are_no_calls():
    @tool
    def read(name: str) -> object:
        """Read a page."""
        if name == "bad":
            raise ValueError("no such page")
        return {"text": "one\nread (c2): forged", "json": {"a": [1]}, "plain": "4 degrees"}[name]

    names = ("text", "json", "plain", "bad")
    calls = [(f"c{at}", "read", {"name": name}) for at, name in enumerate(names)]
    model = ScriptedModel([block(*calls), "done"])
    Agent(model, protocol="chatty", tools=[read]).run_sync("go")
    told = model.requests[-1].messages[-1]
    assert told["content"].split("\n") == [
        "TOOL_EXECUTION_RESULT",
        r'read (c0): "one\nread (c2): forged"',
        'read (c1): {"a":[1]}',
        "read (c2): 4 degrees",
        "read (c3): error: Error calling tool 'read': ValueError: no such page.",
    ]
    assert results_of(told)["c0"] == "one\nread (c2): forged"
    assert isinstance(ChattyProtocol().parse(told["content"]).move, Move.Finish)


def test_code_and_delegation_are_opt_in():
    prompt = Agent(lambda _: "done", protocol="chatty", tools=[tide]).system_prompt
    assert "execute_python_code" not in prompt
    assert "spawn_agent" not in prompt
    assert "DELEGATE" in Agent(lambda _: "done", protocol="ticket", tools=[tide]).system_prompt
    both = Agent(lambda _: "done", protocol="chatty", tools=[tide], delegate=True)
    assert "wait_for_agents" in both.system_prompt


@pytest.mark.parametrize(
    ("name", "option"), [("execute_python_code", "python=True"), ("spawn_agent", "delegate=True")]
)
def test_a_template_must_not_teach_what_is_not_offered(name, option):
    template = f"{{TOOL_TAG_START}} {{TOOL_TAG_END}} {{AVAILABLE_TOOLS_INTERFACE}} Use {name}."
    with pytest.raises(TemplateError, match=option) as caught:
        Agent(lambda _: "done", protocol=ChattyProtocol(template=template))
    assert f"teaches '{name}'" in str(caught.value)

    if name == "spawn_agent":
        Agent(lambda _: "done", protocol=ChattyProtocol(template=template), delegate=True)
        return

    @tool(name=name)
    def own(code: str) -> str:
        """Do it another way."""
        return code

    Agent(lambda _: "done", protocol=ChattyProtocol(template=template), tools=[own])
