"""What a person sees of a call is what is executed, and nothing else looks like a call."""

import asyncio
import dataclasses
import json
import random
import re
import unicodedata

import pytest
from pydantic import BaseModel

from callslip import Agent, OpenAPI, ScriptedModel, TicketStore, UsageError, replay, tool
from callslip.approval import view
from callslip.approval._lines import lines_of
from payments import made, pay_to
from scripted import act, block, finish

pytestmark = pytest.mark.usefixtures("no_payments")

PIECES = [
    "ann",
    "90000",
    " ",
    "\n",
    "\n\n\n",
    "\t",
    "x" * 300,
    " " * 300,
    "\u4e2d" * 70,
    "pay \u2192 ann, 5",
    "\nApprove? [y]es, [n]o, [e]dit the arguments, or a reason to deny: ",
    "\n    amount | 5",
    "\n  Tool: other",
    '"\n    to     | "bob"',
    "\x1b[2J\x1b[H",
    "\r",
    "\x9b2K",
    "\u202e",
    "\u2800" * 40,
    "\u3164",
    "\ufe0f",
    "\U000e0101",
    "\u27e8U+0041\u27e9",
    "\u0338",
    "a\u0301\u0301\u0301\u0301\u0301",
    "\U0001f469\u200d\U0001f4bb",
    "\\u0041",
    "(the default)",
]


def hostile(seed, count):
    """Texts of pieces that try to draw another call."""
    choose = random.Random(seed)
    return ["".join(choose.choices(PIECES, k=choose.randint(1, 6))) for _ in range(count)]


def waiting(*tools, script, store=None, **options):
    """The ticket of a run that waits, from the function that approves it, and the result."""
    seen = []

    def approve(ticket):
        seen.append(ticket)
        return True

    agent = Agent(ScriptedModel([*script, finish()]), tools=list(tools), store=store, **options)
    result = agent.run_sync("go", approve=approve)
    return seen, result


def ticket_of(arguments):
    """A ticket with these arguments, as a run has it."""
    (ticket,), _ = waiting(pay_to, script=[act("pay", **arguments)])
    return ticket


def unnamed(text):
    return re.sub(r"\u27e8U\+([0-9A-F]{4,6})\u27e9", lambda found: chr(int(found[1], 16)), text)


def widest(line):
    """The columns of a line on a terminal that draws wide what may be wide."""
    return sum(
        0 if unicodedata.combining(one) else 1 + (unicodedata.east_asian_width(one) in "WFA")
        for one in line
    )


def read_back(lines, name):
    """The value that a person reads on the lines of one argument."""
    label = re.compile(rf"    {name} *\| ")
    texts = [line[found.end() :] for line in lines if (found := label.match(line))]
    if not (count := re.match(r"\(a text of ([0-9,]+) lines\)$", texts[0])):
        return json.loads(unnamed_json("".join(texts)))
    assert int(count[1].replace(",", "")) > 1
    return unnamed("".join(texts[1:]))


def unnamed_json(text):
    """JSON in which characters that were named, other than the escapes of JSON, are back."""
    return re.sub(
        r"\u27e8U\+([0-9A-F]{4,6})\u27e9",
        lambda found: json.dumps(chr(int(found[1], 16)))[1:-1],
        text,
    )


@pytest.mark.parametrize("width", [80, 40])
def test_each_line_is_labelled_and_has_what_is_executed(width):
    ticket = ticket_of({"to": "ann", "amount": 90000})
    for text in hostile(width, 200):
        one = dataclasses.replace(ticket, arguments={"to": text, "amount": 90000})
        *lines, short = view(one).lines(width)
        assert max(map(widest, lines)) <= width, text
        assert widest(short) <= width
        assert short.startswith("pay")
        assert all(
            re.match(
                r"A call needs |  Tool: |    (to|amount) *\| |  (From|Look|Reason|Seal): ", line
            )
            for line in lines
        ), lines
        assert [line for line in lines if "amount" in line[:12]] == ["    amount | 90000"]
        # Line breaks of a text are those of the lines, which are wrapped at any place.
        assert read_back(lines, "to").replace("\n", "") == text.replace("\n", "")
        assert not {one for line in [*lines, short] for one in line if not one.isprintable()}


def test_the_short_line_stands_above_the_question_in_every_encoding():
    call = view(ticket_of({"to": "mallory", "amount": 90000}))
    assert call.short == "pay \u2192 mallory, 90000"
    assert call.lines()[-1] == call.short
    assert lines_of(call, 80, "ascii")[-1] == "pay -> mallory, 90000"
    longer = view(ticket_of({"to": "x" * 41, "amount": 90000}))
    assert longer.short == "pay \u2192 90000 (+ 1 longer above)"
    quoted = view(ticket_of({"to": "ann, 5", "amount": 1}))
    assert quoted.short == 'pay \u2192 "ann, 5", 1'


@pytest.mark.parametrize(
    ("text", "note"),
    [
        ("a\u2800b", "has U+2800 BRAILLE PATTERN BLANK"),
        ("a\u3164\u3164b", "has U+3164 HANGUL FILLER, 2 times"),
        ("p\u0430ypal", "p\u0430ypal has U+0430 CYRILLIC SMALL LETTER A"),
        ("\u0440\u0430\u0443", "\u0440\u0430\u0443 has U+0440 CYRILLIC SMALL LETTER ER, "),
        ("pay\uff0ecom", "has U+FF0E FULLWIDTH FULL STOP"),
        ("x\u00a0y", "has U+00A0 NO-BREAK SPACE"),
        ("ok\ufe0f", "has U+FE0F VARIATION SELECTOR-16"),
        ("ok\U000e0150", "has U+E0150 VARIATION SELECTOR-97"),
    ],
)
def test_what_is_not_seen_or_taken_for_another_is_named(text, note):
    (row, _) = view(ticket_of({"to": text, "amount": 1})).rows
    assert any(note in one for one in row.notes), row.notes


def test_marks_of_every_script_stand_on_three_others_at_most():
    marks = [chr(at) for at in range(0x300, 0x20000) if unicodedata.category(chr(at)) in "MnMe"]
    assert len(marks) > 1_500
    ticket = ticket_of({"to": "ann", "amount": 1})
    for one in marks:
        (row,) = view(dataclasses.replace(ticket, arguments={"to": "e" + one * 9})).rows[:1]
        shown = unnamed_json(row.lines[0])
        assert json.loads(shown) == "e" + one * 9
        assert row.lines[0].count(one) <= 3
        assert any(f"U+{ord(one):04X}" in note for note in row.notes)


@pytest.mark.parametrize("value", [["\u05d0\u05d1", 5, 90000], {"\u0627": 5, "b": 7}])
def test_each_item_beside_letters_from_right_to_left_has_its_line(value):
    call = view(dataclasses.replace(ticket_of({"to": "x", "amount": 1}), arguments={"to": value}))
    assert len(call.rows[0].lines) == len(value) + 2
    assert call.short == "pay (+ 1 longer above)"


@pytest.mark.parametrize(
    "text",
    [
        "Gr\u00fc\u00dfe",
        "\u041f\u0440\u0438\u0432\u0435\u0442",
        "\u4e2d\u6587",
        "\u2764\ufe0f",
        "1\ufe0f\u20e3",
        "caf\u00e9",
    ],
)
def test_what_is_as_it_looks_has_no_note(text):
    assert view(ticket_of({"to": text, "amount": 1})).notes == ()


def test_defaults_are_arguments():
    checked, got = [], []

    def check(arguments, context):
        checked.append(arguments)
        return True

    @tool(needs_approval=check)
    def transfer(to: str, amount: int = 5, note: str | None = None) -> str:
        """Send money."""
        got.append((to, amount, note))
        return "sent"

    (ticket,), result = waiting(transfer, script=[act("transfer", to="ann")])
    assert checked == [{"to": "ann", "amount": 5}]
    assert ticket.arguments == {"to": "ann", "amount": 5}
    assert ticket.call == 'transfer {"to": "ann", "amount": 5}'
    assert [(row.name, row.origin) for row in view(ticket).rows] == [
        ("to", "given"),
        ("amount", "default"),
        ("note", "left out"),
    ]
    assert view(ticket).about == "Send money."
    assert got == [("ann", 5, None)]
    assert replay(result.run).export() == result.run.export()


def test_a_default_that_was_shown_is_executed_or_the_deploy_is_refused():
    got = []

    def agent(default, store, *replies):
        @tool(needs_approval=True)
        def transfer(to: str, amount: int = default) -> str:
            got.append((to, amount))
            return "sent"

        return Agent(ScriptedModel(list(replies)), tools=[transfer], store=store)

    with TicketStore() as store:

        async def leave():
            run = agent(5, store, act("transfer", to="ann")).start("go")
            async for event in run.watch():
                if getattr(event, "needs_approval", False):
                    return run.id
            raise AssertionError

        run_id = asyncio.run(leave())
        run = store.run(run_id)
        (ticket,) = run.awaiting_approval
        assert view(ticket).short == "transfer \u2192 ann, 5"
        run.approve(ticket, seal=ticket.seal)
        with pytest.raises(UsageError, match="/amount is 7"):
            agent(7, store, finish()).resume_sync(run_id)
        agent(5, store, finish()).resume_sync(run_id)
    assert got == [("ann", 5)]


def test_defaults_of_fields_are_shown():
    class Order(BaseModel):
        item: str
        express: bool = True

    @tool(needs_approval=True)
    def order(order: Order) -> str:
        return f"{order.express}"

    (ticket,), _ = waiting(order, script=[act("order", order={"item": "x"})])
    rows = {row.name: (row.value, row.origin) for row in view(ticket).rows}
    assert rows["order.express"] == (True, "default")


def test_a_default_without_a_type_of_json_is_the_functions_own():
    class Secret:
        pass

    own = Secret()
    got = []

    @tool(needs_approval=True)
    def look(place=(1, 2), secret=own, names: list[str] = []) -> str:  # noqa: B006
        got.append((place, secret))
        names.append("x")
        return "ok"

    waiting(look, script=[act("look"), act("look", place=3)])
    assert got == [((1, 2), own), (3, own)]


def test_references_are_filled_before_defaults():
    @tool
    def price() -> int:
        return 900

    @tool(needs_approval=True)
    def transfer(amount: int, to: str = "$p") -> str:
        return f"{to} {amount}"

    script = [block(("p", "price", {}), ("c", "transfer", {"amount": "$p"}))]
    (ticket,), result = waiting(price, transfer, script=script, protocol="chatty")
    assert ticket.arguments == {"amount": 900, "to": "$p"}
    assert result.tickets[1].result == "$p 900"


def test_an_edited_call_has_its_defaults_and_names_each_problem():
    @tool(needs_approval=True)
    def transfer(to: str, amount: int = 5) -> str:
        return f"{to} {amount}"

    problems = []

    def approve(ticket, problem=None):
        problems.append(problem)
        return {"to": 1, "cents": 3} if problem is None else {"to": "bob"}

    agent = Agent(ScriptedModel([act("transfer", to="ann"), finish()]), tools=[transfer])
    result = agent.run_sync("go", approve=approve)
    assert result.tickets[0].arguments == {"to": "bob", "amount": 5}
    assert "cents" in problems[1]


@pytest.fixture
def left():
    store = TicketStore()
    model = ScriptedModel([act("pay", to="ann", amount=5), finish()])
    agent = Agent(model, tools=[pay_to], store=store)

    async def leave():
        run = agent.start("go")
        async for event in run.watch():
            if getattr(event, "needs_approval", False):
                return store.run(run.id)
        raise AssertionError

    return asyncio.run(leave()), store


def test_a_seal_is_of_one_call_and_one_run(left):
    run, _ = left
    (ticket,) = run.awaiting_approval
    other = ticket_of({"to": "ann", "amount": 5})
    assert re.fullmatch(r"[0-9a-f]{64}", ticket.seal)
    assert other.seal != ticket.seal
    with pytest.raises(UsageError, match="not the one with this seal"):
        run.approve(ticket, seal=other.seal)
    with pytest.raises(UsageError) as refused:
        run.approve(ticket, arguments={"to": 1}, seal=ticket.seal)
    assert [place for place, _ in refused.value.problems] == ["/amount", "/to"]
    run.approve(ticket, seal=ticket.seal)
    assert run.tickets[0].seal is None


def test_the_key_of_the_seals_is_in_the_log_alone(left):
    run, store = left
    (key,) = re.findall(r'"seal_key":"(\w{32})"', run.export())
    store.compact(run.id)
    compacted = store.run(run.id)
    assert compacted.awaiting_approval[0].seal == run.awaiting_approval[0].seal
    for one in (run, compacted):
        shown = [event.to_json() for event in one.log] + [one.to_html(), repr(one.log)]
        assert not any(key in text for text in shown)


def test_what_an_operation_leaves_out_is_shown_with_its_default():
    parameter = {"in": "query", "schema": {"type": "integer", "default": 20}}
    names = [{"name": "count", **parameter}, {"name": "x", "in": "query", "schema": {}}]
    document = {
        "openapi": "3.1.0",
        "info": {"title": "t", "version": "1"},
        "paths": {
            "/users/{id}": {
                "delete": {
                    "parameters": [
                        {"name": "id", "in": "path", "required": True, "schema": {}},
                        *names,
                    ]
                }
            }
        },
    }
    handlers = {"DELETE /users/{id}": lambda **_: None}
    api = OpenAPI.from_dict(document, handlers=handlers, needs_approval=True)
    (ticket,), _ = waiting(api, script=[act("DELETE /users/{id}", id="a/b")])
    call = view(ticket)
    assert call.request == "DELETE /users/a%2Fb"
    assert [(row.name, row.lines) for row in call.rows] == [
        ("id", ('"a/b"',)),
        ("count", ("(left out; the default is 20)",)),
    ]
    assert made == []
