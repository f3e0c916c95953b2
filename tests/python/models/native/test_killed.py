"""A native run whose process is killed at every event: the service admits how it goes on."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from callslip import TicketStore
from optional import optional_module
from services.anthropic import AnthropicService
from services.loopback import running

optional_module("anthropic")
if not hasattr(signal, "SIGKILL"):
    pytest.skip("processes are killed by a signal", allow_module_level=True)
killed_native = optional_module("killed_native")

OSLO = '{"city": "Oslo"}'
REPLIES = [
    [("think", "Both?"), ("text", "I look."), *[("call", "a", "weather", OSLO)] * 2],
    [("think", "Pay."), ("call", "b", "pay", '{"amount": NaN}'), ("call", "c", "weather", OSLO)],
    [("think", "Again."), ("call", "a", "pay", '{"amount": 5}')],
    [("text", "Done.")],
]
# At the first event the run is in no store yet.
EVENTS = range(2, 20)
# Each process has the library of the model already.
FORKS = multiprocessing.get_context("forkserver")
FORKS.set_forkserver_preload(["killed_native"])


def killed_at(folder, number):
    """Kill a run at an event and resume it. Returns its events before and after, and payments."""
    store, paid = folder / f"{number}.sqlite", folder / f"{number}.txt"
    with running(AnthropicService()) as service:
        service.begin(*REPLIES)
        options = (str(store), service.base, str(paid), number)
        process = FORKS.Process(target=killed_native.begin, args=options)
        process.start()
        process.join(120)
        with TicketStore(store) as kept:
            (run,) = kept.runs()
            before = kept.run(run.run_id).log
            replied = sum(event.kind == "model_replied" for event in before)
            service.begin(*REPLIES[replied:], *REPLIES[-1:])
            with killed_native.agent_of(kept, service.base, paid) as agent:
                result = agent.resume_sync(run.run_id, approve=lambda _: True)
            tickets = result.tickets
    payments = paid.read_text().split() if paid.exists() else []
    return process.exitcode, len(before), result.value, payments, tickets


def test_no_kill_loses_a_run_or_pays_twice(tmp_path, monkeypatch):
    # The server that forks finds the module by this alone.
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(sys.path))
    with ThreadPoolExecutor(2) as both:
        ends = list(both.map(lambda number: killed_at(tmp_path, number), EVENTS))
    lengths = set()
    for code, length, value, payments, tickets in ends:
        assert value == "Done."
        assert len(payments) <= 1
        assert [one.tool for one in tickets] == ["weather", "weather", "pay"]
        # A payment that was killed in the middle is in doubt, and is not made again.
        (told,) = (one for one in tickets if one.tool == "pay")
        assert bool(payments) or told.error is not None
        lengths.add(length)
        assert code in {-signal.SIGKILL, 0}
    assert [end[0] for end in ends].count(-signal.SIGKILL) > 12
    assert len(lengths) > 5
