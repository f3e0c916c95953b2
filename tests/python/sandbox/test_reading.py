"""The border of what scripts declare: cases of the core come through, odd strings are refused."""

import json
from pathlib import Path

import pytest

from callslip import _core

CASES = Path(__file__).parents[2] / "data" / "scripts.jsonl"


def test_the_cases_of_the_core_come_through() -> None:
    for line in CASES.read_text().splitlines():
        case = json.loads(line)
        read = json.loads(_core.read_script(case["code"]))
        expected = case["expect"]
        if "refused" in expected:
            said = {"code": expected["refused"], "message": expected["message"]}
            assert read == {"refused": said}, case["id"]
        else:
            wanted = {"hints": [], "requires_python": None, "code": case["code"], **expected}
            assert {**read, **wanted} == read, case["id"]
            assert len(read["names"]) == len(read["dependencies"])


def test_half_a_surrogate_pair_is_no_text() -> None:
    message = "expected text: got half of a surrogate pair: write the character itself"
    read = json.loads(_core.read_script("print('\ud800')"))
    assert read == {"refused": {"code": "bad_code", "message": message}}


def test_the_python_asked_for_is_compared_where_one_is_given() -> None:
    code = '# requires-python = ">=3.13"\nprint(1)'
    assert json.loads(_core.read_script(code, "3.13.0"))["requires_python"] == ">=3.13"
    assert json.loads(_core.read_script(code, "3.12.4"))["refused"] == {
        "code": "dependency_rejected",
        "message": (
            "the script requires Python >=3.13, this one is 3.12.4: write it for Python 3.12.4"
        ),
    }


@pytest.mark.parametrize("network", [False, True])
def test_hints_are_for_what_was_not_there(network: bool) -> None:
    stderr = "socket.gaierror: [Errno -3] Temporary failure in name resolution\n"
    hints = _core.script_hints("print(1)", stderr, interactive=False, network=network)
    said = "scripts have no network here: work with what the code holds, or fetch with another tool"
    assert hints == ([] if network else [said + " first"])
