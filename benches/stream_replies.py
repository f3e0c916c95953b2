"""A streamed reply with a partial read after each chunk, beside parsers that parse anew each time.

    python benches/stream_replies.py [--rounds 5]

A chunk is four characters. callslip reads the reply, takes a snapshot after each chunk and looks at
its arguments or its answer. The others get the JSON alone as far as it has come. Where that would
take too long they are measured at places spread evenly over the reply, and scaled to all of them.
All run in one process, in turn, and the quickest of the rounds counts.
"""

from __future__ import annotations

import argparse
import gc
import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import jiter
import json_repair
from langchain_core.utils.json import parse_partial_json
from replies import CONTENTS, chatty, dumps, react, ticket

from callslip import ChattyProtocol, ReactProtocol, Reader, TicketProtocol
from callslip.protocols import Protocol

SIZES = {"10 KB": 10_000, "100 KB": 100_000, "400 KB": 400_000}
CHUNK = 4
# Seconds for one peer at one size in one round, and the fewest chunks after which it is measured.
BUDGET = 0.5
FEWEST = 9
GOLDEN = (math.sqrt(5) - 1) / 2


def arguments(reader: Reader, chunks: list[str]) -> object:
    value = None
    for chunk in chunks:
        reader.push(chunk)
        for call in reader.snapshot().calls:
            value = call.arguments
    return value


def answer(reader: Reader, chunks: list[str]) -> object:
    value = None
    for chunk in chunks:
        reader.push(chunk)
        value = reader.snapshot().answer
    return value


Write = Callable[[dict[str, Any]], str]
Stream = Callable[[Reader, list[str]], object]
OURS: dict[str, tuple[Protocol, Write, Stream]] = {
    "callslip, chatty": (ChattyProtocol(), chatty, arguments),
    "callslip, react": (ReactProtocol(), react, arguments),
    "callslip, ticket": (TicketProtocol(), ticket, answer),
}
PEERS: dict[str, Callable[[str], object]] = {
    "jiter": lambda text: jiter.from_json(text.encode(), partial_mode="trailing-strings"),
    "json_repair": json_repair.loads,
    "langchain-core": parse_partial_json,
}


def ours(name: str, content: dict[str, Any]) -> float:
    protocol, write, stream = OURS[name]
    reply = write(content)
    chunks = [reply[at : at + CHUNK] for at in range(0, len(reply), CHUNK)]
    reader = protocol.reader()
    began = time.perf_counter()
    value = stream(reader, chunks)
    seconds = time.perf_counter() - began
    assert value == content
    return seconds


class Sample:
    """A peer after some of the chunks, spread evenly: the quickest of the rounds after each."""

    def __init__(self, name: str, content: dict[str, Any]) -> None:
        self.parse, self.text = PEERS[name], dumps(content)
        self.chunks = len(self.text) // CHUNK
        self.best: dict[int, float] = {}
        began = time.perf_counter()
        for place in range(self.chunks):
            # Each step of the golden ratio falls into the largest gap that is left.
            end = int((place + 0.5) * GOLDEN % 1 * self.chunks + 1) * CHUNK
            self.best[end] = self.time(end)
            if place + 1 >= FEWEST and time.perf_counter() - began > BUDGET:
                break

    def time(self, end: int) -> float:
        began = time.perf_counter()
        self.parse(self.text[:end])
        return time.perf_counter() - began

    def again(self) -> None:
        for end, seconds in self.best.items():
            self.best[end] = min(seconds, self.time(end))

    def seconds(self) -> float:
        """Seconds after all chunks together."""
        return sum(self.best.values()) * self.chunks / len(self.best)


def exponent(seconds: list[float]) -> float:
    """Slope of the line through the logarithms."""
    x = [math.log(size) for size in SIZES.values()]
    y = [math.log(took) for took in seconds]
    return statistics.linear_regression(x, y).slope


def shown(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds < 10 else f"{seconds:,.0f} s"


def main(rounds: int) -> None:
    sizes = " | ".join(SIZES)
    print(f"| content | reader | {sizes} | exponent | to callslip at 100 KB | chunks measured |")
    print("|---|---|---|---|---|---|---|---|")
    for kind, make in CONTENTS.items():
        contents = [make(size) for size in SIZES.values()]
        best: dict[str, list[float]] = {name: [] for name in (*OURS, *PEERS)}
        samples: dict[str, list[Sample]] = {name: [] for name in PEERS}
        for content in contents:
            gc.collect()
            took = {name: ours(name, content) for name in OURS}
            sampled = {name: Sample(name, content) for name in PEERS}
            for _ in range(rounds - 1):
                gc.collect()
                took = {name: min(seconds, ours(name, content)) for name, seconds in took.items()}
                # The others are so far away that once is enough.
                sampled["jiter"].again()
            for name, sample in sampled.items():
                samples[name].append(sample)
                took[name] = sample.seconds()
            for name, seconds in took.items():
                best[name].append(seconds)
        base = best["callslip, chatty"][1]
        for name, row in best.items():
            times = " | ".join(map(shown, row))
            ratio = "" if name in OURS else f"{row[1] / base:,.0f}"
            places = [f"{len(sample.best):,}" for sample in samples.get(name, [])]
            rest = f"{exponent(row):.2f} | {ratio} | {'; '.join(places) or 'all'}"
            print(f"| {kind} | {name} | {times} | {rest} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    main(parser.parse_args().rounds)
