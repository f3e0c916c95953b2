"""Results of pandas, NumPy and Polars as JSON."""

from __future__ import annotations

import datetime as dt
import json
import math
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

from callslip import Agent, ScriptedModel, tool
from callslip._base.json import ResultError, to_json
from scripted import act, finish


def frame(**columns: Any) -> Any:
    return pd.DataFrame(columns)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            frame(a=[1, 2], b=["x", None], c=[1.5, math.nan]),
            {"row_count": 2, "columns": ["a", "b", "c"], "rows": [[1, "x", 1.5], [2, None, None]]},
        ),
        (frame(), {"row_count": 0, "columns": [], "rows": []}),
        (
            frame(at=pd.to_datetime(["2025-01-31T12:00", None])),
            {"row_count": 2, "columns": ["at"], "rows": [["2025-01-31T12:00:00"], [None]]},
        ),
        (
            frame(n=pd.array([1, None], dtype="Int64"), f=[math.inf, 1.0]),
            {"row_count": 2, "columns": ["n", "f"], "rows": [[1, "Infinity"], [None, 1.0]]},
        ),
        # An index that says something is a column, also beside one of its name.
        (
            frame(a=[1, 2]).loc[[1]],
            {"row_count": 1, "columns": ["index", "a"], "rows": [[1, 2]]},
        ),
        (
            frame(k=["x", "x", "y"], a=[1, 2, 3]).groupby("k").sum(),
            {"row_count": 2, "columns": ["k", "a"], "rows": [["x", 3], ["y", 3]]},
        ),
        (
            frame(a=[1]).set_index(pd.Index([5], name="a")),
            {"row_count": 1, "columns": ["a", "a"], "rows": [[5, 1]]},
        ),
        (pd.Series([1, 2]), [1, 2]),
        (
            pd.Series([1], index=["u"]),
            {"row_count": 1, "columns": ["index", "value"], "rows": [["u", 1]]},
        ),
        (
            {"frame": pl.DataFrame({"a": [1, None], "d": [dt.date(2025, 1, 31), None]})},
            {
                "frame": {
                    "row_count": 2,
                    "columns": ["a", "d"],
                    "rows": [[1, "2025-01-31"], [None, None]],
                }
            },
        ),
        (pl.Series([1, None]), [1, None]),
        (np.arange(4).reshape(2, 2), [[0, 1], [2, 3]]),
        (np.array([1.5, math.nan]), [1.5, "NaN"]),
        (np.array(["2025-01-31T12:00"], dtype="datetime64[ns]"), ["2025-01-31T12:00:00"]),
        (np.timedelta64(90, "m"), "PT1H30M"),
        (
            {np.int64(3): [np.float32(1.5), np.bool_(True)]},
            {"3": [1.5, True]},
        ),
        (pd.NaT, None),
        ([pd.NA], [None]),
    ],
)
def test_objects_of_libraries(value: Any, expected: Any) -> None:
    assert json.loads(to_json(value)) == expected


def test_a_long_frame_begins_with_its_size_and_is_kept_whole() -> None:
    @tool
    def rows(n: int) -> Any:
        return frame(number=range(n), name=[f"row {i}" for i in range(n)])

    model = ScriptedModel([act("rows", n=100_000), finish()])
    result = Agent(model, protocol="react", tools=[rows]).run_sync("go")
    told = result.messages[-2]["content"]
    start = 'Observation: {"row_count":100000,"columns":["number","name"],"rows":[[0,"row 0"],'
    assert told.startswith(start)
    assert len(told) < 33_000
    more = "call read_result with the ticket T1 and the offset 32768 for the next part"
    cut = f"\n[cut: 32768 of 1977837 bytes are shown; {more}]"
    assert told.endswith(cut)
    assert result.tickets[0].result["rows"][-1] == [99_999, "row 99999"]


def test_a_lazy_frame_has_no_json() -> None:
    with pytest.raises(ResultError, match="expected a result that has JSON: got an object of"):
        to_json(pl.LazyFrame({"a": [1]}))
