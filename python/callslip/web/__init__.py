"""For web applications with agents: events for browsers, errors as answers, and a guard.

Install with `pip install "callslip[web]"`.

app = FastAPI(exception_handlers=exception_handlers())

@app.get("/runs/{run_id}/events")
def events(request: Request, run_id: str) -> Response:
    return event_response(request, store.run(run_id))

uvicorn.run(Guard(app, hosts=["chat.example.com"], token=os.environ["CHAT_TOKEN"]))
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from callslip._base.attribute_names import unknown_name
from callslip._base.extras import needs
from callslip.web._errors import error_body, status_of
from callslip.web._guard import Guard
from callslip.web._stream import Item, event_stream, item_json

if TYPE_CHECKING:
    from callslip.web._bodies import read_json
    from callslip.web._responses import event_response, exception_handlers

__all__ = [
    "Guard",
    "Item",
    "error_body",
    "event_response",
    "event_stream",
    "exception_handlers",
    "item_json",
    "read_json",
    "status_of",
]

# Starlette is only imported for these.
_HOMES = {
    "event_response": "_responses",
    "exception_handlers": "_responses",
    "read_json": "_bodies",
}


# Hidden from type checkers, which would take any name for one of the module.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name not in _HOMES:
            raise unknown_name("callslip.web", name, __all__)
        with needs("callslip[web]"):
            found = getattr(import_module(f"callslip.web.{_HOMES[name]}"), name)
        globals()[name] = found
        return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
