"""History policies: the part of a long conversation that the model is shown.

    Agent(model, history=KeepLast(20))

A policy chooses among the exchanges of a run: each reply of the model together with its outcome.
The prompt, its example and the task are always shown, and the messages of the run never change.

Without a policy the oldest exchanges are left out once they fill two fifths of the context of the
model, if its size is known, or once the model refuses a request as too long.
"""

from __future__ import annotations

from callslip.history._exchange import Exchange, HistoryPolicy
from callslip.history._history import History
from callslip.history._keep_last import KeepLast
from callslip.history._summary import Summarize

__all__ = ["Exchange", "History", "HistoryPolicy", "KeepLast", "Summarize"]
