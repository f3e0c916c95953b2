"""History policies: trimming of long conversations.

    Agent(model, history=KeepLast(20))

A policy selects from the exchanges of a run: each reply of the model together with its outcome.
The prompt, its example and the task are never dropped, and the stored messages never change.

Without a policy, the oldest exchanges are dropped once they fill two fifths of the model's context,
if its size is known, or once the model refuses a request as too long.
"""

from __future__ import annotations

from callslip.history._exchange import Exchange, HistoryPolicy
from callslip.history._history import History
from callslip.history._keep_last import KeepLast
from callslip.history._summary import Summarize

__all__ = ["Exchange", "History", "HistoryPolicy", "KeepLast", "Summarize"]
