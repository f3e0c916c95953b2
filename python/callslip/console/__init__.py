"""A live console: the runs of a store as pages, where people decide on calls.

Install with `pip install "callslip[console]"`.

app.mount("/callslip", console(store, token=os.environ["CONSOLE_TOKEN"], hosts=["ops.example.com"]))
serve(store)
"""

from __future__ import annotations

from callslip._base.extras import needs

with needs("callslip[console]"):
    from callslip.console._app import Console
    from callslip.console._open import console
    from callslip.console._options import Name
    from callslip.console._serve import serve

__all__ = ["Console", "Name", "console", "serve"]
