"""The table of faulty tool calls, and what is put on the page of the comparison later."""

import asyncio
import copy
import json
import sys
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

ROOT = Path(__file__).resolve().parents[3]
BENCHES = str(ROOT / "benches")

# Other programs there have the names of packages that tests start.
sys.path.append(BENCHES)
from comparison import call_table, fault_runs  # noqa: E402
from comparison.call_faults import CALL_FAULTS, COERCED, OF_TEXT  # noqa: E402
from comparison.fault_cells import has_died, is_leaked  # noqa: E402
from comparison.faults import FAULTS, GOOD  # noqa: E402
from comparison.later import UNMEASURED, notes, take  # noqa: E402
from comparison.page import render  # noqa: E402
from comparison.peers import PEERS, callslip, callslip_chatty, callslip_native  # noqa: E402
from comparison.refusals import why_refused  # noqa: E402
from comparison.service import Call, Reply, Script, serve  # noqa: E402
from comparison.task import Made  # noqa: E402

sys.path.remove(BENCHES)

DATA = json.loads((ROOT / "docs/comparison.json").read_text("utf-8"))
TRIED = ["two_objects", "cut_whole", "prefix", "one_id", "tag_text"]
NAMES = [fault.name for fault in CALL_FAULTS]


def test_every_fault_of_calls_was_tried_with_every_peer():
    assert len(set(NAMES)) == 17
    assert not set(NAMES) & {fault.name for fault in FAULTS}
    assert {COERCED, *OF_TEXT} <= set(NAMES)
    for peer in (peer for peer in PEERS if peer.has_faults):
        rows = DATA["peers"][peer.name]["calls"]
        assert list(rows) == (list(callslip.rows()) if peer.name == "callslip" else [""])
        assert all(list(records) == NAMES for records in rows.values())


def test_callslip_executes_none_dies_of_none_and_leaks_none():
    for name in ("callslip", "callslip_native"):
        for records in DATA["peers"][name]["calls"].values():
            assert call_table.counts(records) == ([], 0, 0)


def test_native_calls_still_do_what_the_page_says():
    # A process for each of them; tests/python/models/native/ has the others.
    found = fault_runs.all_of(callslip_native, TRIED, CALL_FAULTS, why_refused)

    known = DATA["peers"]["callslip_native"]["calls"][""]
    assert list(found) == TRIED
    for fault in (fault for fault in CALL_FAULTS if fault.name in TRIED):
        record = found[fault.name]
        for name in ("ended", "executed"):
            assert record[name] == known[fault.name][name], fault.name
        assert not has_died(record)
        assert not is_leaked(fault, record)


@pytest.mark.parametrize("adapter", [callslip, callslip_chatty, callslip_native])
def test_each_form_makes_the_calls_of_the_loop(adapter):
    Made.calls = 0
    assert asyncio.run(adapter.counter(5, None)()) == "ok"
    assert Made.calls == 5


def history(*calls, results=("c1",)):
    message = Reply(calls or [Call(GOOD)]).message
    told = [{"role": "tool", "tool_call_id": name, "content": "ok"} for name in results]
    return {"messages": [{"role": "user", "content": "pay"}, message, *told]}


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (history(), None),
        (history(Call('{"a": NaN}')), None),
        (history(Call("[1]")), "Failed to parse"),
        (history(Call("{")), "Failed to parse"),
        (history(Call(GOOD, name="functions.pay")), "function.name"),
        (history(Call(GOOD, id="")), "tool_calls[0].id"),
        (history(Call(GOOD), Call(GOOD)), "an id of its own"),
        (history(results=()), "did not have response"),
        (history(results=("c1", "c1")), "must follow"),
    ],
)
def test_the_service_refuses_what_services_refuse(request_, words):
    refused = why_refused(request_)
    assert refused is None if words is None else words in refused


def test_a_refused_request_is_answered_with_400():
    script = Script([], Reply(text="done"), check=lambda _: "no")
    with serve(script) as base:
        request = Request(f"{base}/chat/completions", b"{}")
        with pytest.raises(HTTPError) as refused:
            urlopen(request)
    assert refused.value.code == 400
    assert json.loads(refused.value.read())["error"]["message"] == "no"


def test_a_later_run_says_so():
    page = copy.deepcopy(DATA)
    del page["peers"]["callslip_native"], page["later"]
    rows = {peer.name: {"title": peer.title} for peer in PEERS}
    kinds = ("loop", "memory", "durable", "imports", "faults", "calls")
    native = DATA["peers"]["callslip_native"]
    rows["callslip_native"] = {name: one for name, one in native.items() if name not in kinds}
    peers = {"callslip_native": native}
    later = {"date": "2030-01-02", "minutes": {"faults": 1}, "peers": peers}

    take(page, later, rows)

    assert list(page["peers"]) == [peer.name for peer in PEERS]
    assert page["peers"]["callslip_native"]["loop"]["20"] == UNMEASURED
    first, *_ = notes(page)
    assert first == "Measured later, on 2030-01-02: Faults of a model, *callslip, native*."
    assert first in render(page)


def test_a_run_of_all_has_no_notes():
    page = copy.deepcopy(DATA)
    page.pop("later", None)
    for one in page["peers"].values():
        one["loop"] = {}
    assert list(notes(page)) == []
