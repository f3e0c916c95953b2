"""The token of a console is in no access log of the server that it is mounted in."""

import logging
from contextlib import contextmanager

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from browsing import CHROMIUM, Watched
from callslip import TicketStore
from callslip.console import _serve, console
from consoles import served

TOKEN = "a-token?with/odd&signs=and%20more#of-them"


@contextmanager
def logged():
    """The lines that uvicorn writes for requests."""
    lines = []

    class Kept(logging.Handler):
        def emit(self, record):
            lines.append(record.getMessage())

    logger, handler = logging.getLogger("uvicorn.access"), Kept()
    logger.addHandler(handler)
    level = logger.level
    yield lines
    logger.removeHandler(handler)
    logger.setLevel(level)


@pytest.mark.skipif(CHROMIUM is None, reason="Chromium is not installed")
@pytest.mark.parametrize("how", ["private file", "address"])
def test_a_person_signs_in_and_no_access_log_has_the_token(browser, monkeypatch, how):
    app = Starlette(routes=[Mount("/ops/callslip", console(TicketStore(), token=TOKEN))])
    served_with_log = served(app, log_level="info", log_config=None, access_log=True)
    with logged() as lines, served_with_log as address, Watched(browser) as watched:
        page, base = watched.page, f"{address}/ops/callslip"
        login = _serve._address(base, TOKEN)
        if how == "address":
            page.goto(login)
        else:
            monkeypatch.setattr(_serve.webbrowser, "open", page.goto)
            with _serve._opened(login):
                pass
        page.locator("#live.is-live").wait_for()
        assert page.url == f"{base}/"
        # Not in the history of the browser either.
        page.go_back()
        assert "token" not in page.url
    said = [line.partition('"')[2] for line in lines]
    assert 'GET /ops/callslip/login HTTP/1.1" 200' in said
    assert 'POST /ops/callslip/login HTTP/1.1" 303' in said
    assert 'GET /ops/callslip/ HTTP/1.1" 200' in said
    assert "token" not in "".join(lines)
    assert TOKEN[:12] not in "".join(lines)
