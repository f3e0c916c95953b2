"""The origins of a call, traced when somebody reads them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from callslip._base.json import from_json
from callslip.origins import Origin
from callslip.origins._read import origins_of

__all__ = ["TracedOrigins"]


class TracedOrigins(Mapping[str, Origin]):
    """Origins by the JSON pointers of the arguments of a call.

    Args:
        trace: Returns them as JSON text. It is called once, by the first reader.
    """

    __slots__ = ("_origins", "_trace")

    def __init__(self, trace: Callable[[], str]) -> None:
        self._trace: Callable[[], str] | None = trace
        self._origins: dict[str, Origin] = {}

    def _known(self) -> dict[str, Origin]:
        trace = self._trace
        if trace is not None:
            self._origins = origins_of(from_json(trace()))
            self._trace = None
        return self._origins

    def __getitem__(self, pointer: str) -> Origin:
        return self._known()[pointer]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known())

    def __len__(self) -> int:
        return len(self._known())

    def __eq__(self, other: object) -> bool:
        return self._known() == (other._known() if isinstance(other, TracedOrigins) else other)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return repr(self._known())

    def __reduce__(self) -> tuple[Any, ...]:
        # A copy, perhaps in another process, has no run.
        return dict, (self._known(),)
