"""How the run of a session begins, and where it stands."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from weakref import ref

if TYPE_CHECKING:
    from callslip._core import Command
    from callslip._core import Run as Core
    from callslip._runtime.early_driver import UnstartedDriver
    from callslip._runtime.home import Home
    from callslip._runtime.session import RunSession
    from callslip._runtime.shared.inbox import Inbox
    from callslip._runtime.shared.tree_position import Place
    from callslip.parts import Content, Said
    from callslip.runs import Run

__all__ = ["Beginning", "FirstCommands"]

FirstCommands: TypeAlias = "Callable[[RunSession], list[Command]]"
"""Starts or resumes the run of a session, and returns the commands that are due then."""


class RunAbove(NamedTuple):
    """A run above a child run.

    Attributes:
        core: Its log.
        ticket: The number of its ticket for the run below.
        run: The run, while somebody keeps it.
    """

    core: Core
    ticket: int
    run: ref[Run]


class Beginning:
    """How a run begins in a session.

    Args:
        first_commands: Starts or resumes the run.

    Attributes:
        said: The task of a new run, until it is started.
        unchecked_task: The task of a run that a program has started, until `check_task` was called.
        unstarted: The driver until then of a run in a task of its own; else `None`.
        home: Where the run is driven; `None` before that.
        inbox: What the run is told from elsewhere; `None` unless its store is shared.
        place: Where a child run stands in its tree; `None` at the top, and unless the store is
            shared.
        continues_children: Whether child runs that began before are to be opened.
        only_reads: Whether the agent only reads the result of the run, which is of another one.
        runs_above: The runs of this process above a child run, the nearest first.
    """

    __slots__ = (
        "continues_children",
        "first_commands",
        "home",
        "inbox",
        "only_reads",
        "place",
        "runs_above",
        "said",
        "unchecked_task",
        "unstarted",
    )

    def __init__(self, first_commands: FirstCommands) -> None:
        self.first_commands: FirstCommands = first_commands
        self.said: Said | None = None
        self.unchecked_task: Content | None = None
        self.unstarted: UnstartedDriver | None = None
        self.home: Home | None = None
        self.inbox: Inbox | None = None
        self.place: Place | None = None
        self.continues_children: bool = False
        self.only_reads: bool = False
        self.runs_above: tuple[RunAbove, ...] = ()

    def stand_below(self, above: RunSession, ticket: int) -> None:
        """Remember the runs above a child run.

        Their logs are kept until the child run is over, whoever else has let go of them: it has to
        know how they ended.

        Args:
            above: The run that has started it.
            ticket: The number of its ticket there.
        """
        own = RunAbove(above.core, ticket, ref(above.run))
        self.runs_above = (own, *above.beginning.runs_above)
