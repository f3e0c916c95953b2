"""Tables of pandas and polars as JSON. Neither library is imported."""

from __future__ import annotations

from typing import Any

__all__ = ["table_of"]


def table_of(value: Any) -> dict[str, Any] | list[Any] | None:
    """Return a data frame or a series as JSON values; `None` for any other object.

    A frame is `{"row_count": n, "columns": [name, …], "rows": [[value, …], …]}`, in this order,
    because a model is shown only the beginning of a long result. Missing values are null. An index
    that is more than the numbers of the rows becomes the first column. A series with such an index
    is a frame, any other series a list.
    """
    if hasattr(value, "iloc") and hasattr(value, "reset_index"):
        if hasattr(value, "columns"):
            return _pandas(value)
        if _counts(value.index):
            return _column(value)
        return _pandas(value.to_frame("value" if value.name is None else value.name))
    if hasattr(value, "height") and callable(getattr(value, "rows", None)):
        return {"row_count": value.height, "columns": list(value.columns), "rows": value.rows()}
    if hasattr(value, "null_count") and callable(getattr(value, "to_list", None)):
        polars: list[Any] = value.to_list()
        return polars
    return None


def _pandas(frame: Any) -> dict[str, Any]:
    if not _counts(frame.index):
        frame = frame.reset_index(allow_duplicates=True)
    columns = [_column(column) for _, column in frame.items()]
    rows = list(zip(*columns, strict=True))
    return {"row_count": len(frame), "columns": list(frame.columns), "rows": rows}


def _counts(index: Any) -> bool:
    return getattr(index, "start", None) == 0 and index.step == 1 and index.name is None


def _column(column: Any) -> list[Any]:
    values: list[Any] = column.astype(object).where(column.notna(), None).tolist()
    if getattr(column.dtype, "kind", "") == "M":
        # The JSON encoder takes longer for each of them.
        return [None if value is None else value.isoformat() for value in values]
    return values
