"""A plain answer that ends with a call of a tool of the run, in whatever form, is no answer."""

import json
from pathlib import Path

import pytest

from callslip import Agent, ChattyProtocol, ReactProtocol, ScriptedModel, TicketProtocol, tool
from scripted import finish, give

PATH = Path(__file__).parents[2] / "data" / "plain_text_replies.jsonl"
REPLIES = [json.loads(line) for line in PATH.read_text(encoding="utf-8").splitlines()]
CALLS = [row["text"] for row in REPLIES if row["outcome"] != "answer"]
ANSWERS = [row["text"] for row in REPLIES if row["outcome"] == "answer"]


def toolset(made):
    @tool
    def get_weather(city: str, days: int = 1) -> str:
        """Get the weather."""
        made.append("get_weather")
        return "4 degrees"

    @tool
    def ping() -> str:
        """Test the server."""
        made.append("ping")
        return "pong"

    @tool
    def search(query: str) -> str:
        """Search."""
        made.append("search")
        return "nothing"

    @tool
    def write_file(path: str, content: str) -> str:
        """Write a file."""
        made.append("write_file")
        return "written"

    @tool
    def lamp(on: bool) -> str:
        """Switch the lamp."""
        made.append("lamp")
        return "on"

    return [get_weather, ping, search, write_file, lamp]


def run(text, *, chunk_size=None):
    made = []
    model = ScriptedModel([text, "over"], chunk_size=chunk_size)
    result = Agent(model, tools=toolset(made), protocol=ChattyProtocol()).run_sync("go")
    assert made == []
    return result.value, len(model.requests)


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_a_call_in_another_form_is_no_answer(chunk_size):
    wrong = [text for text in CALLS if run(text, chunk_size=chunk_size) != ("over", 2)]
    assert wrong == []


@pytest.mark.parametrize("chunk_size", [None, 3])
def test_an_answer_that_speaks_of_tools_is_an_answer(chunk_size):
    wrong = [text for text in ANSWERS if run(text, chunk_size=chunk_size) != (text, 1)]
    assert wrong == []


def test_the_public_reading_knows_tools_where_they_are_passed():
    text = 'I look.\n\nget_weather(city="Oslo")'
    protocol, tools = ChattyProtocol(), toolset([])
    assert protocol.parse(text).move.value == text
    violation = protocol.parse(text, tools=tools).violation
    assert violation.code == "untagged_tool_call"
    assert violation.message == (
        "expected an answer or a call in the form of this conversation: got a call in another form"
    )
    reader = protocol.reader(tools=tools)
    for character in text:
        reader.push(character)
    assert reader.finish().violation.code == "untagged_tool_call"


def test_only_plain_text_is_looked_at():
    text = 'get_weather(city="Oslo")'
    tools = toolset([])
    assert ReactProtocol().parse(finish(text), tools=tools).move.value == text
    assert TicketProtocol().parse(give(text), tools=tools).move.value == text


TEMPLATE_OPENED = {
    "So 2 + 2.\n</think>\n\nHi": ("Hi", "So 2 + 2."),
    "</think>It is 4": ("It is 4", None),
    "</think>\n\nIt is 4": ("It is 4", None),
    "First. Then </think> It is 4": ("It is 4", "First. Then"),
    "perhaps `</think>` then\n</think>\nHi": ("Hi", "perhaps `</think>` then"),
    "steps\n[BEGIN FINAL RESPONSE]\nHi\n[END FINAL RESPONSE]": ("Hi", "steps"),
    "hm[/THINK]Hi": ("Hi", "hm"),
}


@pytest.mark.parametrize("text", TEMPLATE_OPENED)
def test_reasoning_that_the_chat_template_opened_is_no_part_of_the_answer(text):
    wanted = TEMPLATE_OPENED[text]
    reply = ChattyProtocol().parse(text)
    assert (reply.move.value, reply.thoughts) == wanted
    assert "implicit_think" in [repair.code for repair in reply.repairs]
    for size in (1, 4):
        reader = ChattyProtocol().reader()
        for at in range(0, len(text), size):
            reader.push(text[at : at + size])
        again = reader.finish()
        assert (again.move.value, again.thoughts, again.repairs) == (*wanted, reply.repairs)
        assert run(text, chunk_size=size) == (wanted[0], 1)


def test_it_is_no_narration_of_a_block_either():
    block = '<tool>[{"call_id": "a", "tool_name": "ping", "arguments": {}}]</tool>'
    reply = ChattyProtocol().parse(f"I could.\n</think>\nLet me see.\n{block}")
    assert (reply.narration, reply.thoughts) == ("Let me see.", "I could.")
    assert ChattyProtocol().parse(f"I could {block} but no.\n</think>\nHi").violation is not None


@pytest.mark.parametrize(
    "text",
    [
        "Use </think> to close it.",
        "The tag is `</think>`.",
        "Write '</think>' last.",
        "<b>a</b> and </thought>",
    ],
)
def test_an_end_that_is_only_spoken_of_is_text(text):
    assert ChattyProtocol().parse(text).move.value == text
