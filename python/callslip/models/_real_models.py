"""Whether real models may be called: a test run can forbid it."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from callslip.errors import UsageError

__all__ = ["check_real_models", "no_real_models"]

_VARIABLE: Final = "CALLSLIP_NO_MODELS"


class _Blocks:
    """The number of `no_real_models` that are in effect, in all threads."""

    count = 0
    lock = threading.Lock()


@contextmanager
def no_real_models() -> Iterator[None]:
    """Refuse calls of real models, in all threads of the process.

    Models of `as_model` and `LocalModel` raise `UsageError` instead, which a run raises as the
    cause of its `ModelError`. Functions and the models of tests can be called. The environment
    variable `CALLSLIP_NO_MODELS=1` does the same for a whole process.
    """
    _add(1)
    try:
        yield
    finally:
        _add(-1)


def check_real_models(model: object) -> None:
    """Check that a real model may be called.

    Raises:
        UsageError: It may not.
    """
    if _Blocks.count or os.environ.get(_VARIABLE) == "1":
        reason = "no_real_models" if _Blocks.count else f"{_VARIABLE}=1"
        name = f"{type(model).__name__} {getattr(model, 'model', None)!r}"
        raise UsageError(
            f"expected no call of a real model under {reason}: got one of {name}: pass a "
            "ScriptedModel, or use agent.override(model=…)"
        )


def _add(count: int) -> None:
    with _Blocks.lock:
        _Blocks.count += count
