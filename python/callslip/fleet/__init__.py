"""Runs on many processes: a queue in a database, and the workers that take runs from it.

`Fleet(store, agents)` gives workers runs (`submit`), waits for their results (`result`), and is a
worker itself (`work`).
"""

from callslip.fleet._fleet import Fleet

__all__ = ["Fleet"]
