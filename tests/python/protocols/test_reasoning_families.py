"""A call rehearsed in the reasoning marks of a model family is never made."""

import json

import pytest

from callslip import Agent, ChattyProtocol, ReactProtocol, ScriptedModel, TicketProtocol, tool
from scripted import finish, give

# How each family begins and ends its reasoning, and what may follow the reply.
FAMILIES = {
    "deepseek": ("<think>\n", "\n</think>\n\n", ""),
    "claude": ("<thinking>", "</thinking>\n", ""),
    "claude-ant": ("<antThinking>", "</antThinking>", ""),
    "exaone": ("<thought>\n", "\n</thought>\n\n", ""),
    "open-webui": (
        '<details type="reasoning" done="true">\n<summary>Thought</summary>\n',
        "</details>\n",
        "",
    ),
    "seed": ("<seed:think>", "</seed:think>", ""),
    "longcat": ("<longcat_think>\n", "\n</longcat_think>\n", ""),
    "minimax": ("<mm:think>", "</mm:think>", ""),
    "magistral": ("[THINK]", "[/THINK]", ""),
    "kimi": ("◁think▷", "◁/think▷", ""),
    "command": ("<|START_THINKING|>", "<|END_THINKING|><|START_RESPONSE|>", "<|END_RESPONSE|>"),
    "command-text": ("<|START_THINKING|>", "<|END_THINKING|><|START_TEXT|>", "<|END_TEXT|>"),
    "openthinker": ("<|begin_of_thought|>", "<|end_of_thought|>\n<|begin_of_solution|>", ""),
    "apertus": ("<|inner_prefix|>", "<|inner_suffix|>", ""),
    "gemma": ("<|channel>thought\n", "<channel|>", ""),
    "medgemma": ("<unused94>thought\n", "<unused95>", ""),
    "pangu": ("[unused16]", "[unused17]", ""),
    "granite": ("Here is my thought process:\n\n", "\nHere is my response:\n\n", ""),
    "granite-short": ("Here's my thought process: ", " Here's my response: ", ""),
    "apriel": (
        "Here are my reasoning steps:\n",
        "\n[BEGIN FINAL RESPONSE]\n",
        "\n[END FINAL RESPONSE]\n<|end|>",
    ),
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
        "<|return|>",
    ),
    "gpt-oss-stripped": ("analysis", "assistantfinal", ""),
    "gpt-oss-twice": ("analysisFirst.assistantanalysis", "assistantfinal", ""),
}
DRAFT = {
    "react": '{"thought": "d", "action": "wipe", "args": "{}"}',
    "chatty": '<tool>[{"call_id": "d", "tool_name": "wipe", "arguments": {}}]</tool>',
    "ticket": (
        '<output>{"type": "CALL", "route": "wipe", "payload": {}, "description": "d"}</output>'
    ),
}
REAL = {name: text.replace("wipe", "look") for name, text in DRAFT.items()}
ANSWER = {"react": finish("ok"), "chatty": "ok", "ticket": give("ok")}
PROTOCOLS = {"react": ReactProtocol, "chatty": ChattyProtocol, "ticket": TicketProtocol}
# What models write around the draft.
AROUND = ["{}", "We could write {} but no.", "The user wants it.\n\n{}\n\nWait, that is wrong."]


def run(protocol, text, *, streamed, **options):
    made = []

    @tool
    def wipe() -> str:
        """Wipe the disk."""
        made.append("wipe")
        return "wiped"

    @tool
    def look() -> str:
        """Look at it."""
        made.append("look")
        return "seen"

    model = ScriptedModel([text, ANSWER[protocol]], chunk_size=3 if streamed else None)
    agent = Agent(model, tools=[wipe, look], protocol=PROTOCOLS[protocol](**options))
    return made, agent.run_sync("go")


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("around", AROUND)
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_the_rehearsed_call_is_not_made(protocol, family, around, streamed):
    start, end, after = FAMILIES[family]
    draft = around.format(DRAFT[protocol])
    made, _ = run(protocol, f"{start}{draft}{end}{REAL[protocol]}{after}", streamed=streamed)
    assert made == ["look"]
    for text in (
        f"{start}{draft}{end}",
        f"{start}{draft}",
        f"{start}{draft}{end}No call is needed.",
    ):
        made, _ = run(protocol, text, streamed=streamed)
        assert made == []


@pytest.mark.parametrize("options", [{"strict": True}, {"lenient": True}])
@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_nor_where_more_or_less_is_read(protocol, family, options):
    start, end, _ = FAMILIES[family]
    native = '<tool_call>{"name": "wipe", "arguments": {}}</tool_call>'
    for draft in (DRAFT[protocol], native):
        for text in (
            f"{start}Or {draft} perhaps.{end}Nothing is needed.",
            f"{start}{draft}{end}",
            f"{start}{draft}",
        ):
            made, _ = run(protocol, text, streamed=False, **options)
            assert made == []


@pytest.mark.parametrize("family", FAMILIES)
def test_an_answer_is_shown_without_the_reasoning(family):
    start, end, after = FAMILIES[family]
    text = f"{start}Hm, seven or eight?{end}Seven.{after}"
    reply = ChattyProtocol().parse(text)
    assert reply.move.value == "Seven."
    assert "seven or eight?" in reply.thoughts
    reader = ChattyProtocol().reader()
    for character in text:
        reader.push(character)
    again = reader.finish()
    assert (again.move.value, again.thoughts) == ("Seven.", reply.thoughts)


INNOCENT = [
    "analysis of the data shows two peaks.",
    "Analysis: two peaks.",
    "analysis, in short, is hard.",
    "Here is my thought process: first add, then divide. The result is 4.",
    "Here are my reasoning steps: 1. add 2. divide",
    "Write assistantfinal at the end.",
    "<details><summary>More</summary>Two rows.</details>\nThat is all.",
    "The final answer is 4.",
]


@pytest.mark.parametrize("text", INNOCENT)
def test_an_answer_that_begins_alike_is_an_answer(text):
    assert ChattyProtocol().parse(text).move.value == text
    reader = ChattyProtocol().reader()
    told = "".join(
        delta.text
        for character in text
        for delta in reader.push(character)[0]
        if hasattr(delta, "text")
    )
    assert text.startswith(told)
    assert reader.finish().move.value == text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_marks_in_values_are_text(protocol):
    value = "analysisX <|channel>thought <unused94> Here is my thought process: x"
    args = {"text": value}
    text = {
        "react": json.dumps({"thought": "t", "action": "note", "args": args}),
        "chatty": "<tool>"
        + json.dumps([{"call_id": "a", "tool_name": "note", "arguments": args}])
        + "</tool>",
        "ticket": "<thoughts>t</thoughts><output>"
        + json.dumps({"type": "CALL", "route": "note", "payload": args, "description": "n"})
        + "</output>",
    }[protocol]
    assert PROTOCOLS[protocol]().parse(text).move.calls[0].arguments == args
