"""Twenty faults of a model: what it writes, and whether a call in it may be executed.

The tool is `transfer(account: str, amount: float)`. No reading of the faults marked with
`must_refuse` is certain, so that a transfer that is made all the same is one that nobody asked for.
Reasonable people differ about the others: they are shown, and not counted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from comparison.service import Call, Reply

GOOD = '{"account": "alice", "amount": 5}'


@dataclass(frozen=True)
class Fault:
    """What the model does, with the reason why it is counted or not."""

    name: str
    title: str
    why: str
    replies: Sequence[Reply]
    must_refuse: bool = False
    fails: bool = False
    """Whether the tool raises."""
    timeout: float | None = None
    """Passed to the client of the model service, in seconds."""
    cancel_after: float | None = None
    """Seconds after which the program cancels the run."""


def _arguments(name: str, title: str, why: str, text: str, **options: bool | str) -> Fault:
    """Return a fault that is in the arguments of one call."""
    finish = str(options["finish"]) if "finish" in options else None
    replies = [Reply([Call(text)], finish=finish)]
    return Fault(name, title, why, replies, must_refuse=bool(options.get("must_refuse")))


FAULTS: tuple[Fault, ...] = (
    _arguments(
        "not_json",
        "arguments are not JSON",
        "nothing says which argument is which",
        "transfer 5 to alice",
        must_refuse=True,
    ),
    _arguments(
        "cut",
        "arguments cut off",
        "the amount may have been 50, the service says that the token limit was reached",
        '{"account": "alice", "amount": 5',
        must_refuse=True,
        finish="length",
    ),
    _arguments(
        "wrong_type",
        "a word for a number",
        "`five` is no number",
        '{"account": "alice", "amount": "five"}',
        must_refuse=True,
    ),
    _arguments(
        "missing",
        "an argument is missing",
        "no amount is given",
        '{"account": "alice"}',
        must_refuse=True,
    ),
    _arguments(
        "unknown_argument",
        "an argument that the tool lacks",
        "`dry_run` changes what the call means; without it the transfer is real",
        '{"account": "alice", "amount": 5, "dry_run": true}',
        must_refuse=True,
    ),
    Fault(
        "unknown_tool",
        "a tool that does not exist",
        "a refund is no transfer",
        [Reply([Call(GOOD, name="refund")])],
        must_refuse=True,
    ),
    _arguments(
        "duplicate_keys",
        "a key twice in one object",
        "5 or 5000: JSON leaves it open",
        '{"account": "alice", "amount": 5, "amount": 5000}',
        must_refuse=True,
    ),
    _arguments(
        "nan",
        "NaN for a number",
        "it is no JSON and no amount",
        '{"account": "alice", "amount": NaN}',
        must_refuse=True,
    ),
    _arguments(
        "huge",
        "a number beyond the range",
        "`1e400` becomes infinity in Python",
        '{"account": "alice", "amount": 1e400}',
        must_refuse=True,
    ),
    _arguments(
        "trailing_comma",
        "a trailing comma",
        "one reading is possible: to execute it and to refuse it are both sound",
        '{"account": "alice", "amount": 5,}',
    ),
    _arguments(
        "number_text",
        "a number in quotes",
        "one reading is possible, but the schema has a number",
        '{"account": "alice", "amount": "5"}',
    ),
    Fault(
        "twice",
        "the same call twice in one reply",
        "two transfers may be meant, or one that is repeated",
        [Reply([Call(GOOD, id="c1"), Call(GOOD, id="c2")])],
    ),
    Fault(
        "same_id",
        "two calls with one id",
        "each call is clear; their results can't be told apart",
        [Reply([Call(GOOD), Call('{"account": "bob", "amount": 7}')])],
    ),
    Fault(
        "beside",
        "an answer beside a call",
        "services allow text beside a call, and models often explain themselves there",
        [Reply([Call(GOOD)], text="The transfer is made.")],
    ),
    Fault("empty", "an empty reply", "there is no call to execute", [Reply(text="")]),
    Fault("blank", "only blanks", "there is no call to execute", [Reply(text=" \n ")]),
    Fault(
        "refusal",
        "a refusal",
        "there is no call to execute",
        [Reply(refusal="I can't help with that.")],
    ),
    Fault(
        "fails",
        "the same failing call for ever",
        "the tool raises each time; counted is how often it is called",
        [Reply([Call(GOOD, id=f"c{number}")]) for number in range(1000)],
        fails=True,
    ),
    Fault(
        "timeout",
        "no answer, the client has a timeout of 0.5 s",
        "there is no call to execute",
        [Reply(silent=True)] * 1000,
        timeout=0.5,
    ),
    Fault(
        "hang",
        "no answer, the program cancels after 1 s",
        "there is no call to execute",
        [Reply(silent=True)] * 1000,
        cancel_after=1.0,
    ),
)
