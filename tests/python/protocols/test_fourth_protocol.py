"""A protocol that only the tests have: calls are `{"tool": …, "args": {…}}`, which react reads."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pytest
from hypothesis import given, settings

from callslip import Agent, ScriptedModel, ToolError, UsageError, protocols, tool
from callslip._core import Protocol as NativeProtocol
from callslip._protocols.protocol import CallForm, Protocol, reply_json
from callslip.testing import Faults, Say, faults
from callslip.testing.strategies import replies
from random_cases import cases

NAME = "one_line"


@dataclass(frozen=True, kw_only=True)
class OneLineProtocol(Protocol):
    """The Python half of a protocol: its name and its words, over the decoder of react."""

    name = NAME
    _call_form = CallForm("", "tool", "args")
    _invented_result = "Observation: invented"

    @cached_property
    def native(self):
        return NativeProtocol("react", {**self._options(), "repairs": "lenient"}, "{}")

    @classmethod
    def _built_in_template(cls):
        return NativeProtocol.built_in_template("react")

    @classmethod
    def _call_text(cls, tool, arguments, number):
        return reply_json({"tool": tool, "args": arguments})

    @classmethod
    def _answer_text(cls, answer):
        return reply_json({"action": "FINISH", "final_answer": answer, "task_successful": True})


@pytest.fixture
def name(monkeypatch) -> str:
    """The name of the protocol, which is in the list."""
    monkeypatch.setitem(protocols._KINDS, NAME, OneLineProtocol)
    return NAME


@tool(effect="idempotent")
def weather(city: str) -> str:
    """Tell the weather."""
    return f"4 degrees in {city}"


def test_the_one_list_makes_a_name_an_option(name):
    say = Say(name)
    assert say.call("weather", city="Oslo") == '{"tool": "weather", "args": {"city": "Oslo"}}'

    with ScriptedModel([say.call("weather", city="Oslo"), say.finish("4 degrees")]) as model:
        agent = Agent(model, protocol=name, tools=[weather])
        result = agent.run_sync("How is Oslo?")

    assert agent.protocol == OneLineProtocol()
    assert result.value == "4 degrees"
    assert [ticket.call for ticket in result.tickets] == ['weather {"city": "Oslo"}']


def test_an_answer_may_have_a_type(name):
    with ScriptedModel([Say(name).finish([1, 2])]) as model:
        assert Agent(model, protocol=name, returns=list[int]).run_sync("Count.").value == [1, 2]


def test_errors_name_it_with_the_others(name):
    expected = "^expected protocol='ticket', 'chatty', 'react', 'native' or 'one_line'"
    with pytest.raises(UsageError, match=expected):
        Agent(ScriptedModel([]), protocol="morse")
    with pytest.raises(ToolError, match="^a tool of the one_line protocol can't be named 'finish'"):
        Agent(ScriptedModel([]), protocol=name, tools=[tool(name="finish")(lambda: "x")])


def test_capabilities_decide_what_an_agent_offers(name):
    agent = Agent(ScriptedModel([]), protocol=name, delegate=True)

    assert "delegate_task" in agent.system_prompt
    with pytest.raises(UsageError, match="^roles are for the chatty protocol"):
        Agent(ScriptedModel([]), protocol=name, delegate=True, roles={"A": agent})


@pytest.mark.parametrize(
    "fault",
    [
        faults.cut,
        faults.duplicate_key,
        faults.invented_observation,
        faults.missing_argument,
        faults.two_moves,
        faults.unknown_tool,
        faults.wrong_type,
    ],
)
def test_faults_break_its_calls(name, fault):
    say = Say(name)
    script = [say.call("weather", city="Oslo"), say.finish("4 degrees")]
    broken = fault(script[0], say)
    text = broken if isinstance(broken, str) else broken.text

    assert text != script[0]
    with Faults(ScriptedModel([script[0], *script]), say, {1: fault}) as model:
        result = Agent(model, protocol=name, tools=[weather]).run_sync("How is Oslo?")

    assert result.value == "4 degrees"
    assert len(result.tickets) <= 2


def test_every_generated_reply_is_read():
    @settings(max_examples=cases(60))
    @given(reply=replies(OneLineProtocol(), [weather], broken=False))
    def check(reply):
        assert OneLineProtocol().parse(reply).violation is None

    check()


def test_its_examples_are_right():
    assert OneLineProtocol().lint([weather]) == []
