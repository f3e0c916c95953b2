"""Images and files of a run, saved from its page."""

import html
import re

import pytest

from callslip import Agent, File, Image, ScriptedModel, tool
from consoles import opened
from pictures import png
from scripted import act, finish

pytestmark = pytest.mark.filterwarnings("ignore:The `is_closed`")


@tool
def report() -> File:
    """Write a report."""
    return File(b"<script>alert(1)</script>", name='"><img src=x>.html', media_type="text/html")


def test_files_of_a_run_are_saved_and_never_shown(store):
    model = ScriptedModel([act("report"), finish()])
    agent = Agent(model, protocol="react", tools=[report], store=store)
    run = agent.run_sync(["Look.", File(b"a,b", name="größe.csv"), Image(png(2, 2))]).run
    with opened(store) as client:
        page = client.get(f"/runs/{run.id}").text
        links = [html.unescape(one) for one in re.findall(r'href="([^"]*/files/[^"]*)"', page)]
        assert links == [f"/runs/{run.id}/files/{label}" for label in ("U1", "U2", "T1")]
        assert "<img src=x>" not in page
        saved = [client.get(link) for link in links]
        assert [one.content for one in saved] == [b"a,b", png(2, 2), b"<script>alert(1)</script>"]
        assert {one.headers["content-type"] for one in saved} == {"application/octet-stream"}
        assert {one.headers["x-content-type-options"] for one in saved} == {"nosniff"}
        assert [one.headers["content-disposition"] for one in saved] == [
            "attachment; filename*=UTF-8''gr%C3%B6%C3%9Fe.csv",
            "attachment; filename*=UTF-8''U2.png",
            "attachment; filename*=UTF-8''___img%20src%3Dx_.html",
        ]
        assert client.get(f"/runs/{run.id}/files/T9").status_code == 404
        assert client.get("/runs/none/files/U1").status_code == 404
        plain = Agent(ScriptedModel([finish()]), protocol="react", store=store).run_sync("x").run
        assert "/files/" not in client.get(f"/runs/{plain.id}").text
