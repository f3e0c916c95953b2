"""What a grammar costs a local model: its size, the time to the first token, tokens a second.

    python benches/grammar.py [--gguf model.gguf] [--rounds 5]

The same request is answered with the grammar of the protocol and without one, in turn, after the
model has read the prompt once. Printed is the median over the rounds, as Markdown.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Mapping, Sequence
from typing import Literal

from callslip import tool
from callslip.models.local import LocalModel
from callslip.protocols import find_protocol
from callslip.tools import Tools

TASK = "Write a mail to Ada in five sentences: the meeting moves from Monday to Thursday."
TOKENS = 120


@tool
def send_mail(to: str, subject: str, body: str, copies: list[str] | None = None) -> str:
    """Send a mail."""
    return "sent"


@tool
def meetings(day: Literal["Monday", "Thursday"], room: int = 1) -> list[str]:
    """List the meetings of a day."""
    return []


TOOLS: Tools = [send_mail, meetings]


def answer(
    model: LocalModel, messages: Sequence[Mapping[str, str]], grammar: str | None
) -> tuple[float, float]:
    """Seconds to the first token, and tokens a second after it."""
    began = time.perf_counter()
    # An empty piece says that the prompt is still being read.
    times = [
        time.perf_counter()
        for piece in model(messages, grammar=grammar, max_tokens=TOKENS)
        if isinstance(piece, str) and piece
    ]
    return times[0] - began, (len(times) - 1) / (times[-1] - times[0])


def main(options: argparse.Namespace) -> None:
    """Measure each protocol, and print a table."""
    print(
        "| protocol | GBNF, KB | rules | made in, ms | first token, s | without | tokens a second "
        "| without |\n" + "|---" * 8 + "|"
    )
    with LocalModel(options.gguf, threads=1, disk_cache=False) as model:
        for name in ("react", "chatty", "ticket"):
            protocol = find_protocol(name)
            system = {"role": "system", "content": protocol.system_prompt(TOOLS)}
            task = {"role": "user", "content": TASK}
            messages = [system, *protocol.example_messages(TOOLS), task]
            began = time.perf_counter()
            grammar = protocol.grammar(TOOLS, bounds=model.bounds).gbnf
            made = time.perf_counter() - began
            answer(model, messages, None)
            rounds = [
                (*answer(model, messages, grammar), *answer(model, messages, None))
                for _ in range(options.rounds)
            ]
            first, speed, first_without, speed_without = map(
                statistics.median, zip(*rounds, strict=True)
            )
            print(
                f"| {name} | {len(grammar) / 1000:.1f} | {grammar.count('::=')} "
                f"| {made * 1000:.1f} | {first:.3f} | {first_without:.3f} | {speed:.1f} "
                f"| {speed_without:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--gguf", help="the model file; default: the bundled one")
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args())
