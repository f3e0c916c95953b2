"""The person who is asked: approves of calls or denies them, beside the runs or between them."""

from __future__ import annotations

import random
import threading
import time

from callslip import Run, StoreError, Ticket, TicketStore, UsageError
from crash.ledger import Ledger

WHY = "do it another way"


def is_denied(key: str) -> bool:
    """The same for whoever is asked, however often."""
    return random.Random(f"{key}/denied").random() < 0.25


class Approver:
    """`chance` is that of a call to be decided on at one look at the list."""

    def __init__(self, ledger: Ledger, store: TicketStore, chance: float) -> None:
        self.ledger = ledger
        self.store = store
        self.chance = chance
        self.over = threading.Event()
        self.failure: Exception | None = None

    def look(self) -> None:
        """Decide on some of the calls that wait, found in the store."""
        for ticket in self.store.tickets(awaiting_approval=True):
            if random.random() < self.chance:
                self.decide_on(self.store.run(ticket.run_id), ticket)

    def visit(self) -> None:
        """The same while nobody works on their runs, slowly enough to be killed at it."""
        for ticket in self.store.tickets(awaiting_approval=True):
            if random.random() < 0.6:
                time.sleep(random.random() * 0.02)
                self.decide_on(self.store.run(ticket.run_id), ticket, alone=True)

    def decide_on(self, run: Run, ticket: Ticket, *, alone: bool = False) -> None:
        """Decide on a call of a run, or of one below it."""
        ids = {"run": ticket.run_id, "ticket": ticket.id, "alone": alone}
        denied = is_denied(f"{ticket.run_id}/{ticket.id}")
        self.ledger.write("asked", "approval", denied=denied, tool=ticket.tool, **ids)
        try:
            if denied:
                run.deny(ticket, WHY)
            else:
                run.approve(ticket)
        except (StoreError, UsageError):
            # Its run is being taken up, or this was decided meanwhile: the list will tell.
            if alone:
                raise
            return
        self.ledger.write("decided", "approval", denied=denied, tool=ticket.tool, **ids)

    def stay(self) -> None:
        """Decide until all is over, in a thread beside the runs."""
        try:
            while not self.over.wait(random.random() * 0.03):
                self.look()
        except Exception as error:  # it is raised where the thread is joined
            self.failure = error

    def __enter__(self) -> None:
        self.thread = threading.Thread(target=self.stay, name="approver")
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()
        if self.failure is not None:
            raise self.failure
