"""Writes messages from other processes to each run's log, exactly once."""

from __future__ import annotations

import selectors
import threading
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary, WeakValueDictionary

from callslip._base.log import GuardedLogger
from callslip._runtime.shared.remote_calls import Elsewhere, Ended
from callslip.errors import StoreError, UsageError
from callslip.runs._answered import outcome_from_text
from callslip.runs._elsewhere import from_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from callslip import _core
    from callslip._runtime.session import RunSession
    from callslip.runs import Run
    from callslip.runs._needs import StoreOfRun

__all__ = ["Inbox", "InboxMessage", "deliver_to", "stop_delivering"]

_log = GuardedLogger("callslip.fleet")
_ENDS = ("ended", "outcome")


class InboxMessage(NamedTuple):
    """One message or decision.

    Attributes:
        number: Its number in the store.
        run_id: The id of the run that receives it.
        kind: `"say"`, `"approve"`, `"deny"`, `"answer"`, `"cancel"` or `"resume"`; or the end of
            something: `"ended"` of a child run, `"outcome"` of a call.
        ticket: The number of the ticket that is meant.
        body: The message, the reason, the arguments of a call or its outcome, as text.
        by: The name of the person behind a decision.
    """

    number: int
    run_id: str
    kind: str
    ticket: int | None
    body: str | None
    by: str | None


class Inbox:
    """The messages for a run, and for the runs that are driven with it.

    Args:
        shared: The shared store.
        run_id: The id of the run at the top.
        messages: Those that are there already.

    Attributes:
        run_id: The id of the run at the top.
        is_of_worker: Whether a worker delivers the messages, and unloads the run while it waits.
        elsewhere: The calls and child runs that other workers have.
    """

    def __init__(
        self, shared: _core.SharedRuns, run_id: str, messages: Iterable[InboxMessage] = ()
    ) -> None:
        self._shared = shared
        self.run_id = run_id
        self.is_of_worker = False
        self.elsewhere: Elsewhere = Elsewhere(shared)
        self._delivering = threading.Lock()
        self._waiting = list(messages)
        self._seen = {message.number for message in self._waiting}
        self._runs: WeakValueDictionary[str, Run] = WeakValueDictionary()

    def take_up(self, session: RunSession, commands: list[_core.Command]) -> list[_core.Command]:
        """Deliver waiting messages to a run, before its first command is performed.

        Args:
            session: The session of the run, which begins or is resumed.
            commands: Its first commands.

        Returns:
            These commands, and the commands that follow from the messages.
        """
        run = session.run
        self._runs[run.id] = run
        mine = [message for message in self._waiting if message.run_id == run.id]
        self._waiting = [message for message in self._waiting if message.run_id != run.id]
        for message in mine:
            if not self._arrives(message):
                commands = commands + _tell(run._core, message, session.now())
        return commands

    def _arrives(self, message: InboxMessage) -> bool:
        """Whether the message is the outcome of an awaited call or child run."""
        if message.kind not in _ENDS or message.ticket is None:
            return False
        ended = Ended(message.number, message.body)
        self.elsewhere.arrive(message.run_id, message.ticket, ended)
        return True

    def deliver(self) -> None:
        """Deliver new messages to the runs in progress. It blocks.

        Raises:
            StoreError: It cannot be read.
        """
        with self._delivering:
            messages = [InboxMessage(*row) for row in self._shared.inbox(self.run_id)]
            self._waiting += [one for one in messages if one.number not in self._seen]
            self._seen = {message.number for message in messages}
            waiting, self._waiting = self._waiting, []
            void = []
            for message in waiting:
                if self._arrives(message):
                    continue
                run = self._runs.get(message.run_id)
                if run is not None and _inject(run, message):
                    continue
                if run is not None and run.finished and run.id != self.run_id:
                    void.append(message.number)
                    if message.kind == "say":
                        text = (
                            "run %s ended before it read a message, which waits until it is resumed"
                        )
                        _log.warning(text, run.id)
                else:
                    # Its driver has not begun yet, or is just leaving the run.
                    self._waiting.append(message)
            if void:
                self._shared.drop_messages(void)


def _inject(run: Run, message: InboxMessage) -> bool:
    driver = run._driver
    return driver is not None and driver.inject(lambda now: _tell(run._core, message, now))


def _tell(core: _core.Run, message: InboxMessage, now: float) -> list[_core.Command]:
    """Pass a message to the core, which replaces it by events."""
    core.take_messages([message.number])
    body = message.body or ""
    try:
        if message.kind == "say":
            said = from_text(body)
            return core.send(said.text, now, said.parts, said.key)
        if message.kind == "resume":
            failed = core.ending is not None and core.ending.reason == "model_error"
            return core.resume(now) if failed else []
        if message.kind == "approve" and message.ticket is not None:
            return core.approve(message.ticket, now, message.body, message.by)
        if message.kind == "deny" and message.ticket is not None:
            return core.deny(message.ticket, body, now, message.by)
        if message.kind == "answer" and message.ticket is not None:
            return core.answer(message.ticket, outcome_from_text(body), now, message.by)
    except UsageError:
        # The call has ended meanwhile, by the limit of the run for example.
        return []
    return core.cancel(now)


class _Deliverer:
    """The thread that delivers to the runs of one store that are driven here without a worker."""

    def __init__(self, shared: _core.SharedRuns) -> None:
        self._shared = shared
        self._lock = threading.Lock()
        self._inboxes: dict[str, Inbox] = {}
        self._is_running = False

    def add(self, inbox: Inbox) -> None:
        with self._lock:
            self._inboxes[inbox.run_id] = inbox
            if self._is_running:
                return
            self._is_running = True
        threading.Thread(target=self._run, name="callslip-inbox", daemon=True).start()

    def remove(self, inbox: Inbox) -> None:
        with self._lock:
            self._inboxes.pop(inbox.run_id, None)

    def _run(self) -> None:
        try:
            notices = self._shared.notices()
        except StoreError:
            # The store is closed, so none of its runs continues.
            return
        # Not `select`, which refuses the descriptors of a process that has more than 1,024.
        with selectors.DefaultSelector() as selector:
            selector.register(notices.fileno(), selectors.EVENT_READ)
            while True:
                selector.select(_LOOK)
                if not self._deliver(notices.take()):
                    return

    def _deliver(self, told: Sequence[tuple[str, str]]) -> bool:
        """Deliver new messages. Returns whether any run is still driven here."""
        with self._lock:
            if not self._inboxes:
                self._is_running = False
                return False
            anything = any(kind == "anything" for kind, _ in told)
            names = {name for kind, name in told if kind == "inbox"}
            inboxes = [inbox for name, inbox in self._inboxes.items() if anything or name in names]
        for inbox in inboxes:
            try:
                inbox.deliver()
            except StoreError:
                # The database is briefly unreachable; the next heartbeat reports the inbox again.
                continue
            except Exception:  # noqa: BLE001  # of one run, such as a loop that was closed
                _log.exception("run %s was not told what has come for it", inbox.run_id)
        return True


_LOOK = 0.5
"""Seconds between two checks whether any run is still driven here."""

_deliverers: WeakKeyDictionary[StoreOfRun, _Deliverer] = WeakKeyDictionary()
_deliverers_lock = threading.Lock()


def deliver_to(store: StoreOfRun, inbox: Inbox) -> None:
    """Deliver messages to a run that is driven here, until `stop_delivering`."""
    assert store._shared is not None
    with _deliverers_lock:
        deliverer = _deliverers.get(store)
        if deliverer is None:
            deliverer = _deliverers[store] = _Deliverer(store._shared)
    deliverer.add(inbox)


def stop_delivering(store: StoreOfRun, inbox: Inbox) -> None:
    """Stop delivering messages to this run."""
    with _deliverers_lock:
        deliverer = _deliverers.get(store)
    if deliverer is not None:
        deliverer.remove(inbox)
