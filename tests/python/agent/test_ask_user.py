"""Questions of the model to the user."""

import pytest

from callslip import Agent, Tool, UsageError, ask_user, replay
from scripted import asked, call_once, patient, turn_of

PROTOCOLS = ["react", "chatty", "ticket", "native"]


def agent_that_asks(protocol, **question):
    script = call_once(protocol, "ask_user", {"question": "Which one?", **question})

    def model(messages, *, tools=(), tool_choice=None):
        return script[turn_of(messages)]

    return Agent(model, protocol=patient(protocol), tools=[ask_user])


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize(
    ("question", "answers", "given"),
    [
        ({}, {"type": "string"}, ("the größer one", 5.5)),
        ({"choices": []}, {"type": "string"}, ("any", ["x"])),
        ({"choices": ["red", "blue"]}, {"enum": ["red", "blue"]}, ("blue", "green")),
        (
            {"choices": ["red", "blue"], "several": True},
            {"type": "array", "items": {"enum": ["red", "blue"]}},
            (["blue", "red"], ["green"]),
        ),
        ({"several": True}, {"type": "array", "items": {"type": "string"}}, (["a", "b"], {"a": 1})),
    ],
)
def test_an_answer_is_one_of_the_choices_if_there_are_any(
    protocol, question, answers, given, store
):
    right, wrong = given
    seen = []

    def answer(ticket, problem=None):
        seen.append((ticket.answers, problem))
        return wrong if problem is None else right

    agent = agent_that_asks(protocol, **question).replace(store=store)
    result = agent.run_sync("go", answer=answer)
    assert [schema for schema, _ in seen] == [answers] * 2
    assert "T1, which still awaits its result" in seen[1][1]
    assert result.tickets[0].result == right
    # A list of a store has the same schema.
    assert store.tickets()[0].answers == answers
    assert len(asked(result.messages)) >= 3
    assert replay(result.run).export() == result.run.export()


def test_the_question_is_declared_once_for_all_protocols():
    assert isinstance(ask_user, Tool)
    assert ask_user.external
    for protocol in PROTOCOLS:
        agent = agent_that_asks(protocol)
        # The tools of a native run stand in its requests.
        if not agent.protocol.native.takes_calls:
            assert "The answers to choose from." in agent.system_prompt
    with pytest.raises(UsageError, match="'ask_user' is answered from outside"):
        agent_that_asks("react").run_sync("go")
