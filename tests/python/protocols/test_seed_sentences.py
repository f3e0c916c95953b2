"""What three prompts say the agent and its environment do, sentence by sentence: each holds.

`seed_sentences.jsonl` says it in our words and names the check. The checks run with small templates
of our own, and with the prompts themselves in the job that reads what is outside the project.
"""

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from callslip import (
    Agent,
    ChattyProtocol,
    Move,
    OpenAPI,
    PythonRunner,
    ReactProtocol,
    ScriptedModel,
    TicketProtocol,
    tool,
)
from scripted import act, block, call, delegate, finish, give, load, spawn, wait, wait_for
from shared import SEEDS

DATA = Path(__file__).parents[2] / "data" / "seed_sentences.jsonl"
ROWS = [json.loads(line) for line in DATA.read_text(encoding="utf-8").splitlines()]

OWN = {
    "ticket": """You work with tickets. The base tools, as an OpenAPI document: {{tool_spec}}
Write <thoughts>notes</thoughts> and then <output>one JSON object</output>:
{"type": "RETURN", "value": "..."}, {"type": "CALL", "route": "...", "payload": "...",
"description": ""}, {"type": "DELEGATE", "task": "..."}, {"type": "AWAIT", "ticket_id": "..."} or
{"type": "LOAD_TICKET", "ticket_id": "..."}.
""",
    "chatty": """Answer in plain text, or with one block:
{TOOL_TAG_START}
[{"call_id": "one", "tool_name": "forecast", "arguments": {"city": "Oslo"}}]
{TOOL_TAG_END}
`execute_python_code` runs code. To give work away:
{TOOL_TAG_START}
[{"call_id": "plan", "tool_name": "spawn_agent", "arguments": {"role": "P", "prompt": "Plan."}},
 {"call_id": "wait", "tool_name": "wait_for_agents", "arguments": {"agent_ids": ["$plan"]}}]
{TOOL_TAG_END}
Tools: {AVAILABLE_TOOLS_INTERFACE}
""",
    "react": """{persona}
Reply with {{"thought": "why", "action": "tool", "args": "{{\\"city\\": \\"Oslo\\"}}"}}, or with
{{"thought": "why", "action": "FINISH", "final_answer": "it", "task_successful": true}}.
Tools: {tools}
""",
}


@tool
def forecast(city: str) -> str:
    """Tell the weather of tomorrow.

    Args:
        city: Its name.
    """
    return f"rain in {city}"


@tool
def broken(city: str) -> str:
    """Fail."""
    raise ValueError("no such city")


def document() -> OpenAPI:
    """A document with a body of parameters, a body of text, and one that is a list."""

    def operation(name: str, media: str, schema: dict[str, Any]) -> dict[str, Any]:
        body = {"required": True, "content": {media: {"schema": schema}}}
        return {"post": {"operationId": name, "requestBody": body}}

    city = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
    text, texts = {"type": "string"}, {"type": "array", "items": {"type": "string"}}
    return OpenAPI.from_dict(
        {
            "openapi": "3.1.0",
            "info": {"title": "Weather", "version": "1"},
            "paths": {
                "/forecast": operation("forecast", "application/json", city),
                "/notes": operation("note", "text/plain", text),
                "/labels": operation("label", "application/json", texts),
            },
        },
        handlers={
            "forecast": lambda city: f"rain in {city}",
            "note": lambda body: f"noted {body}",
            "label": lambda body: f"{len(body)} labels",
        },
    )


Run = Callable[..., Any]
CHECKS: dict[str, Callable[[Run], None]] = {}


def check(function: Callable[[Run], None]) -> Callable[[Run], None]:
    CHECKS[function.__name__] = function
    return function


def runner_of(protocol: str, template: Any) -> Run:
    """Run an agent with this template on a scripted model; the model stands on the result."""

    def run(*replies: str, task: str = "the task", **options: Any) -> Any:
        model = ScriptedModel(list(replies), chunk_size=options.pop("chunk_size", None))
        kwargs: dict[str, Any] = {"template": template, "examples": False}
        if protocol == "ticket":
            made: Any = TicketProtocol(grace=options.pop("grace", 60), **kwargs)
            agent = Agent(model, protocol=made, tools=document(), delegate=True, **options)
        elif protocol == "chatty":
            runner = options.pop("python", None) or PythonRunner(profile="unconfined")
            made = ChattyProtocol(**kwargs)
            tools = [forecast, broken]
            agent = Agent(
                model, protocol=made, tools=tools, delegate=True, python=runner, **options
            )
        else:
            tools = [forecast, broken]
            agent = Agent(model, protocol=ReactProtocol(**kwargs), tools=tools, **options)
        result = agent.run_sync(task)
        return Shown(result, agent, model)

    return run


class Shown:
    """A run that has ended, as the checks look at it."""

    def __init__(self, result: Any, agent: Any, model: Any) -> None:
        self.value, self.success, self.tickets = result.value, result.success, result.tickets
        self.log = result.run.log
        self.prompt: str = agent.system_prompt
        self.protocol = agent.protocol
        self.requests = [request.messages for request in model.requests]
        self.codes = [one.violation["code"] for one in self.log if one.kind == "violated"]

    @property
    def told(self) -> list[str]:
        """What the model was told before each reply."""
        return [messages[-1]["content"] for messages in self.requests]


def rows(message: str) -> list[dict[str, str]]:
    listed: list[dict[str, str]] = json.loads(message.rpartition("Tickets:\n")[2])
    return listed


OWN_ROW = {"id": "T0", "description": "your own task: the task", "status": "IN_PROGRESS"}

# Ticket.


@check
def ticket_spec(run: Run) -> None:
    prompt = run(give(1)).prompt
    assert '"/forecast"' in prompt
    assert '"openapi":"3.1.0"' in prompt


@check
def ticket_base_tool(run: Run) -> None:
    shown = run(call("POST /forecast", {"city": "Oslo"}), give("rain"))
    assert [ticket.result for ticket in shown.tickets] == ["rain in Oslo"]
    assert shown.codes == []


@check
def ticket_list(run: Run) -> None:
    shown = run(call("POST /forecast", {"city": "Oslo"}, "look"), give("rain"))
    assert [len(rows(message)) for message in shown.told] == [1, 2]


@check
def ticket_of_a_call(run: Run) -> None:
    shown = run(call("POST /forecast", {"city": "Oslo"}, "look outside"), give("rain"))
    assert rows(shown.told[1])[1] == {
        "id": "T1",
        "description": "look outside",
        "status": "COMPLETED",
    }


@check
def ticket_of_a_delegated_task(run: Run) -> None:
    shown = run(delegate("a part"), give("part done"), wait("T1"), give("all done"))
    described = [row for message in shown.told for row in rows(message)]
    assert {row["description"] for row in described} >= {"a part", "your own task: a part"}
    assert shown.value == "all done"


@check
def ticket_of_the_own_task(run: Run) -> None:
    shown = run(give("done"))
    assert rows(shown.told[0]) == [OWN_ROW]


@check
def ticket_properties(run: Run) -> None:
    shown = run(call("POST /forecast", {"city": "Oslo"}), give("rain"))
    listed = [row for message in shown.told for row in rows(message)]
    assert {tuple(row) for row in listed} == {("id", "description", "status")}
    assert {row["status"] for row in listed} == {"IN_PROGRESS", "COMPLETED"}


@check
def ticket_delegation(run: Run) -> None:
    shown = run(delegate("a part"), give("part done"), wait("T1"), load("T1"), give("done"))
    child = next(messages for messages in shown.requests if "a part" in messages[-1]["content"])
    assert child[-1]["content"].startswith("a part\n")
    assert len(child) == 2
    assert '"part done"' in shown.told[-1]


@check
def ticket_thoughts(run: Run) -> None:
    shown = run(
        "<thoughts>\nit is 4\n</thoughts>\n<output>" + '{"type":"RETURN","value":5}</output>'
    )
    assert shown.value == 5
    assert shown.protocol.parse(give(1)).thoughts == "plan"


@check
def ticket_one_decision(run: Run) -> None:
    two = give(1).replace("</output>", '{"type": "RETURN", "value": 2}\n</output>')
    shown = run(two, give(3))
    assert (shown.codes, shown.value) == (["multiple_actions"], 3)


@check
def ticket_return(run: Run) -> None:
    for value in ["done", 4, None, [1, {"a": "b"}]]:
        assert run(give(value)).value == value


@check
def ticket_call_with_a_text(run: Run) -> None:
    shown = run(call("POST /notes", "wash the car", "note it"), give("ok"))
    assert [ticket.result for ticket in shown.tickets] == ["noted wash the car"]
    assert shown.codes == []


@check
def ticket_call_with_a_list(run: Run) -> None:
    shown = run(call("POST /labels", ["a", "b"], "label it"), give("ok"))
    assert [ticket.result for ticket in shown.tickets] == ["2 labels"]


@check
def ticket_call_with_the_body_named(run: Run) -> None:
    shown = run(call("POST /notes", {"body": "wash the car"}), give("ok"))
    assert [ticket.result for ticket in shown.tickets] == ["noted wash the car"]


@check
def ticket_description(run: Run) -> None:
    shown = run(call("POST /forecast", {"city": "Oslo"}, "why I call"), give("rain"))
    assert [ticket.description for ticket in shown.tickets] == ["why I call"]


@check
def ticket_await(run: Run) -> None:
    shown = run(delegate("a part"), give("part done"), wait("T1"), give("done"))
    assert any("T1 is COMPLETED" in message for message in shown.told)
    assert shown.codes == []


@check
def ticket_await_of_the_own_task(run: Run) -> None:
    for move in (wait("T0"), load("T0")):
        shown = run(move, give("done"))
        assert (shown.codes, shown.value) == (["own_ticket"], "done")
        assert "T0 is your own task" in shown.told[1]


@check
def ticket_load(run: Run) -> None:
    shown = run(delegate("a part"), give("part done"), wait("T1"), load("T1"), give("done"))
    assert 'Result of ticket T1:\n"part done"' in shown.told[-1]


# Chatty.


@check
def chatty_direct_answer(run: Run) -> None:
    shown = run("It will rain.", chunk_size=3)
    assert (shown.value, shown.tickets) == ("It will rain.", [])


@check
def chatty_block(run: Run) -> None:
    shown = run(block(("a", "forecast", {"city": "Oslo"})), "rain")
    assert [ticket.result for ticket in shown.tickets] == ["rain in Oslo"]


@check
def chatty_several_calls(run: Run) -> None:
    calls = [(name, "forecast", {"city": name}) for name in ("Oslo", "Bergen")]
    shown = run(block(*calls), "rain")
    assert [ticket.result for ticket in shown.tickets] == ["rain in Oslo", "rain in Bergen"]


@check
def chatty_single_block(run: Run) -> None:
    one = block(("a", "forecast", {"city": "Oslo"}))
    two = one + "\nAnd then:\n" + block(("b", "forecast", {"city": "Bergen"}))
    shown = run(two, "no")
    assert (shown.codes, shown.tickets) == (["multiple_actions"], [])


@check
def chatty_valid_array(run: Run) -> None:
    shown = run("<tool>[{]</tool>", "no")
    assert (len(shown.codes), shown.tickets) == (1, [])


@check
def chatty_call(run: Run) -> None:
    shown = run(block(("my id", "forecast", {"city": "Oslo"})), "rain")
    (ticket,) = shown.tickets
    assert (ticket.call_id, ticket.tool) == ("my id", "forecast")
    assert shown.told[1] == "TOOL_EXECUTION_RESULT\nforecast (my id): rain in Oslo"


@check
def chatty_examples(run: Run) -> None:
    shown = run("done")
    blocks = re.findall(r"^<tool>$.*?^</tool>$", shown.prompt, re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    moves = [shown.protocol.parse(one).move for one in blocks]
    assert all(isinstance(move, Move.Call) for move in moves)


@check
def chatty_script(run: Run) -> None:
    shown = run(block(("a", "execute_python_code", {"code": "print(6 * 7)"})), "42")
    assert shown.tickets[0].result["stdout"] == "42\n"


@check
def chatty_interactive_script(run: Run) -> None:
    heard = threading.Event()

    def answer(prompt: str) -> str:
        heard.set()
        return "Ann"

    code = "print('Hello ' + input('name? '))"
    calls = ("a", "execute_python_code", {"code": code, "interactive": True})
    runner = PythonRunner(profile="unconfined", ask=answer)
    shown = run(block(calls), "done", python=runner)
    assert heard.is_set()
    assert "session ended" in shown.told[1]
    assert "Hello Ann" not in shown.told[1]


@check
def chatty_thinking(run: Run) -> None:
    rehearsed = block(("a", "forecast", {"city": "Oslo"}))
    shown = run(f"<think>\nShall I? {rehearsed}\n</think>\nNo need: it rains.")
    assert (shown.value, shown.tickets) == ("No need: it rains.", [])


@check
def chatty_spawn_and_wait(run: Run) -> None:
    first = block(spawn("plan", "Plan it."), wait_for("$plan"))
    shown = run(first, "the plan", "done")
    child = next(one for one in shown.requests if one[-1]["content"].endswith("\n\nPlan it."))
    assert (len(child), "Your role: Worker" in child[-1]["content"]) == (2, True)
    assert shown.told[-1].startswith("TOOL_EXECUTION_RESULT\n")
    assert "the plan" in shown.told[-1]
    assert (shown.value, shown.codes) == ("done", [])


@check
def chatty_wait_is_last(run: Run) -> None:
    shown = run(block(spawn("plan", "Plan it."), wait_for("$plan"), spawn("b", "More.")), "no")
    assert (shown.codes, shown.tickets) == (["wait_not_last"], [])


@check
def chatty_second_turn(run: Run) -> None:
    block_ = block(("fetch_call", "forecast", {"city": "Oslo"}))
    for array in (block_, block_.replace("[{", "\n[\n  {").replace("}]", "}\n]\n")):
        turn = f'"Good, that is the plan. Now I do it."\n```\n{array}\n```'
        for chunk_size in (None, 1, 7):
            shown = run(turn, "rain", chunk_size=chunk_size)
            assert [ticket.result for ticket in shown.tickets] == ["rain in Oslo"]
            assert shown.codes == []


@check
def chatty_third_turn(run: Run) -> None:
    first, second = (block((name, "forecast", {"city": name})) for name in ("Oslo", "Bergen"))
    shown = run(first, second, "rain")
    assert [len(shown.tickets), shown.value] == [2, "rain"]


@check
def chatty_tools(run: Run) -> None:
    prompt = run("done").prompt
    for words in ('"forecast"', "Tell the weather of tomorrow.", '"city"', '"required"'):
        assert words in prompt


# React.


@check
def react_cycle(run: Run) -> None:
    shown = run(act("forecast", city="Oslo"), act("forecast", city="Bergen"), finish("rain"))
    assert shown.told[1:] == ["Observation: rain in Oslo", "Observation: rain in Bergen"]
    assert (shown.value, shown.success) == ("rain", True)


@check
def react_persona(run: Run) -> None:
    assert "You know the sea." in run(finish("x"), instructions="You know the sea.").prompt


@check
def react_json_only(run: Run) -> None:
    shown = run("It rains.", finish("rain"))
    assert (shown.codes, shown.value) == (["no_action"], "rain")


@check
def react_exact_name(run: Run) -> None:
    shown = run(act("Forecast", city="Oslo"), finish("x"))
    assert (shown.codes, shown.tickets) == (["unknown_tool"], [])
    assert "'forecast'" in shown.told[1]


@check
def react_args_are_text(run: Run) -> None:
    args = json.dumps({"city": 'a "quoted" one'})
    written = json.dumps({"thought": "t", "action": "forecast", "args": args})
    shown = run(written, finish("x"))
    assert shown.tickets[0].arguments == {"city": 'a "quoted" one'}
    assert next(one.repairs for one in shown.log if one.kind == "model_replied") == []


@check
def react_missing_argument(run: Run) -> None:
    for args in ("{}", '{"days": 5}'):
        reply = json.dumps({"thought": "t", "action": "forecast", "args": args})
        shown = run(reply, finish("x"))
        assert len(shown.codes) == 1
        assert shown.codes[0] in {"missing_argument", "unknown_argument"}
        assert (shown.tickets, "'city'" in shown.told[1]) == ([], True)


@check
def react_wrong_argument(run: Run) -> None:
    shown = run(act("forecast", town="Oslo"), finish("x"))
    assert (shown.codes, shown.tickets) == (["unknown_argument"], [])


@check
def react_call_or_answer(run: Run) -> None:
    args = json.dumps({"city": "Oslo"})
    both = {"thought": "t", "action": "forecast", "args": args, "final_answer": "rain"}
    shown = run(json.dumps(both), finish("x"))
    assert (shown.codes, shown.tickets) == (["both_action_and_final"], [])


@check
def react_success_beside_a_call(run: Run) -> None:
    args = json.dumps({"city": "Oslo"})
    both = {"thought": "t", "action": "forecast", "args": args, "task_successful": True}
    shown = run(json.dumps(both), finish("x"))
    assert (shown.codes, shown.tickets) == (["both_action_and_final"], [])


@check
def react_finish_without_args(run: Run) -> None:
    both = json.loads(finish("rain")) | {"args": json.dumps({"city": "Oslo"})}
    shown = run(json.dumps(both), finish("x"))
    assert (shown.codes, shown.value) == (["both_action_and_final"], "x")


@check
def react_failed_task(run: Run) -> None:
    reply = json.loads(finish("It can't be known.")) | {"task_successful": False}
    shown = run(json.dumps(reply))
    assert (shown.value, shown.success) == ("It can't be known.", False)


@check
def react_no_repetition(run: Run) -> None:
    shown = run(act("broken", city="Oslo"), act("broken", city="Oslo"), finish("x"))
    assert (shown.codes, len(shown.tickets)) == (["repeated_after_failure"], 1)


@check
def react_one_action(run: Run) -> None:
    shown = run(act("forecast", city="Oslo") + act("forecast", city="Bergen"), finish("x"))
    assert (shown.codes, shown.tickets) == (["multiple_actions"], [])


@check
def react_error(run: Run) -> None:
    shown = run(act("broken", city="Oslo"), act("forecast", city="Oslo"), finish("rain"))
    assert "Error calling tool 'broken': ValueError: no such city." in shown.told[1]
    assert (shown.value, shown.codes) == ("rain", [])


@check
def react_tools(run: Run) -> None:
    prompt = run(finish("x")).prompt
    for words in ("forecast", "Tell the weather of tomorrow.", "city", "required"):
        assert words in prompt


def test_each_sentence_has_its_check_and_each_check_its_sentence():
    assert sorted(row["check"] for row in ROWS) == sorted(CHECKS)
    assert all(row["check"].startswith(row["protocol"]) and row["says"] for row in ROWS)


@pytest.mark.parametrize("row", ROWS, ids=[row["check"] for row in ROWS])
def test_a_sentence_holds_with_a_template_of_our_own(row):
    CHECKS[row["check"]](runner_of(row["protocol"], OWN[row["protocol"]]))


@pytest.mark.shared
@pytest.mark.parametrize("row", ROWS, ids=[row["check"] for row in ROWS])
def test_a_sentence_holds_with_the_prompt_itself(row):
    CHECKS[row["check"]](runner_of(row["protocol"], SEEDS / f"{row['protocol']}.txt"))
