"""Scripts that call tools, run by Monty."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from callslip._base.option_names import knows_names_of_class
from callslip._base.options import check_flag, check_seconds, check_type, check_whole, checked_texts
from callslip._scripts.monty import ABOUT, MontyEngine
from callslip._scripts.runner import RUN_LIMITS, ScriptRunner
from callslip.errors import UsageError
from callslip.limits import Limits

__all__ = ["MontyRunner"]


@knows_names_of_class({"tools": "calls=…", "timeout": "cpu_seconds=…", "memory": "memory_bytes=…"})
class MontyRunner(ScriptRunner):
    """Runs scripts that call the tools of their agent: `Agent(…, python=MontyRunner())`.

    Each script is a child run. Its calls are tickets with checks, approval and retries like any
    other, and after a crash the script continues from its log. The model reads
    `{status, stdout, value?, error?, calls, notes}`. The status is `"ok"`, `"error"`, `"limit"`,
    `"in_doubt"` or `"diverged"`.

    Monty is an interpreter for a subset of Python, without classes that inherit, generators and
    most of the standard library. It runs in a separate process, and gives scripts no files and no
    network. That process has the rights of your user, so only the interpreter protects them.

    Args:
        calls: The tools that a script can call: `"all"` (default), `"readonly"`, or their names.
        run_limits: The limits of one script. Default: 100 tickets, 16 of them
            open at the same time. Turns have no limit.
        cpu_seconds: Seconds of processor time of one script, without the time of its calls.
        memory_bytes: Bytes of the objects of one script.
        check: Whether a script is checked before it runs: for unknown tools, for wrong arguments
            and for a forgotten `await`.

    Raises:
        UsageError: An option is invalid.
        ModuleNotFoundError: Monty is not installed: use `pip install "callslip[monty]"`.
    """

    def __init__(
        self,
        *,
        calls: Literal["all", "readonly"] | Sequence[str] = "all",
        run_limits: Limits | None = None,
        cpu_seconds: float = 10.0,
        memory_bytes: int = 256 << 20,
        check: bool = True,
    ) -> None:
        if isinstance(calls, str):
            if calls not in {"all", "readonly"}:
                raise UsageError(
                    f"expected calls='all', 'readonly' or a list of names: got {calls!r}; pass one "
                    "of them"
                )
        else:
            calls = checked_texts("calls", calls)
        if run_limits is not None:
            check_type("run_limits", run_limits, Limits, "Limits(…) or None")
        check_seconds("cpu_seconds", cpu_seconds)
        check_whole("memory_bytes", memory_bytes, 1 << 20)
        check_flag("check", check)
        limits = RUN_LIMITS if run_limits is None else run_limits
        most = _UNLIMITED if limits.tickets is None else limits.tickets
        engine = MontyEngine(
            cpu_seconds=cpu_seconds,
            memory_bytes=memory_bytes,
            # Each call suspends the script a few times, and so does each look at the clock.
            suspensions=5_000 + 10 * most,
            check=check,
        )
        super().__init__(engine=engine, calls=calls, run_limits=limits, about=ABOUT)


_UNLIMITED = 100_000
"""Calls of a script without a limit of tickets."""
