"""Packages of scripts, end to end: the developer's own index, real wheels, a real plot."""

from __future__ import annotations

import os
import socket

import pytest

from callslip import Agent, PythonRunner, ScriptedModel
from callslip.errors import ScriptRefused
from sandbox.offered import need
from sandbox.scene import Listener, processes_below
from scripted import act, finish

PLOT = """
# dependencies = ["numpy", "pandas", "matplotlib"]
import os
import numpy as np
import pandas as pd
import matplotlib
matplotlib.use("Agg")
import matplotlib.pyplot as plt

frame = pd.DataFrame({"x": np.arange(5), "y": np.arange(5) ** 2})
frame.plot(x="x", y="y")
os.makedirs("out", exist_ok=True)
plt.savefig("out/plot.png")
print(frame.y.sum())
"""


@pytest.fixture(scope="module")
def index():
    """Skip where there is no way to an index of packages."""
    need("auto")
    try:
        socket.create_connection(("pypi.org", 443), 10).close()
    except OSError as error:
        if not os.environ.get("CI"):
            pytest.skip(f"no way to an index of packages: {error}")


@pytest.fixture(scope="module")
def cache_folder(tmp_path_factory):
    """Empty at first, so that what is declared is installed for the first time."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def cache(cache_folder, monkeypatch):
    """The cache of all tests here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache_folder))


class Heard:
    def __init__(self):
        self.events = []

    def __call__(self, event):
        self.events.append(event)

    def stages(self):
        return [event.data["stage"] for event in self.events if event.kind == "deps"]


@pytest.mark.usefixtures("index", "cache")
def test_declared_packages_are_installed_once_and_the_plot_comes_back(tmp_path):
    approved = ["numpy", "pandas", "matplotlib"]
    heard = Heard()
    with PythonRunner(deps=approved, on_event=heard, artifacts=tmp_path) as runner:
        result = runner.run(PLOT)
        assert (result.status, result.stdout) == ("ok", "30\n"), result.stderr
        (plot,) = result.artifacts
        assert (plot.path, plot.mime) == ("plot.png", "image/png")
        assert plot.read_bytes().startswith(b"\x89PNG\r\n\x1a\n")
        assert plot.file.is_relative_to(tmp_path)
        # Progress is told while it goes on, and there is more of it than the end.
        kinds = [event.kind for event in heard.events]
        assert len(heard.stages()) >= 3
        assert kinds.index("deps") < kinds.index("started")
        assert heard.stages()[-1] == "done"

        heard.events.clear()
        again = runner.run(PLOT.replace("30", "31"))
        assert again.status == "ok"
        # The second time nothing is resolved, downloaded or installed.
        assert set(heard.stages()) <= {"done"}

        model = ScriptedModel([act("execute_python_code", code=PLOT), finish()], parts=("image",))
        Agent(model, protocol="react", python=runner).run_sync("plot")
        (seen,) = model.requests[1].messages[-1]["parts"]
        assert (seen.name, seen.width, seen.height) == ("plot.png", 640, 480)


@pytest.mark.usefixtures("index", "cache")
def test_a_package_that_needs_building_is_refused():
    # Of docopt there is no wheel: to install it is to run its setup.py.
    with PythonRunner(deps=["docopt"]) as runner, pytest.raises(ScriptRefused) as refused:
        runner.run('# dependencies = ["docopt==0.6.2"]\nprint("ran")')
    assert refused.value.code == "dependency_install_failed"
    assert "docopt" in str(refused.value)
    assert "wheel" in str(refused.value)


@pytest.mark.usefixtures("index", "cache")
def test_an_invented_package_is_told_as_such():
    name = "callslip-no-such-package-4711"
    with PythonRunner(deps=[name]) as runner, pytest.raises(ScriptRefused) as refused:
        runner.run(f'# dependencies = ["{name}"]\nprint("ran")')
    assert refused.value.code == "dependency_install_failed"
    assert name in str(refused.value)


@pytest.mark.parametrize(
    "declared",
    [
        '["x @ http://127.0.0.1:{port}/${{CALLSLIP_CANARY}}/x-1-py3-none-any.whl"]',
        '["--index-url=http://127.0.0.1:{port}/simple"]',
        '["requests\\\\n--index-url http://127.0.0.1:{port}/"]',
        '["requests", "-r /etc/passwd"]',
    ],
)
def test_what_is_no_package_is_refused_before_anything_is_started(declared, tmp_path, monkeypatch):
    need("auto")
    monkeypatch.setenv("CALLSLIP_CANARY", "canary-secret")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    listener = Listener(tmp_path / "socket")
    heard, asked = Heard(), []
    before = processes_below(os.getpid())
    try:
        runner = PythonRunner(deps=lambda them: asked.append(them) or True, on_event=heard)
        with runner, pytest.raises(ScriptRefused) as refused:
            runner.run(f"# dependencies = {declared.format(port=listener.port)}\nprint('ran')")
        assert refused.value.code == "dependency_rejected"
        assert (asked, heard.events) == ([], [])
        assert processes_below(os.getpid()) == before
        assert listener.contacts() == []
        assert [path.name for path in tmp_path.iterdir()] == ["socket"]
    finally:
        listener.close()


def test_nothing_is_installed_that_is_not_approved(tmp_path, monkeypatch):
    need("auto")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    heard = Heard()
    runner = PythonRunner(deps=["numpy"], on_event=heard)
    with runner, pytest.raises(ScriptRefused) as refused:
        runner.run('# dependencies = ["numpy", "nunpy"]\nprint("ran")')
    assert refused.value.code == "dependency_denied"
    assert "nunpy" in str(refused.value)
    assert heard.events == []
    assert list(tmp_path.iterdir()) == []
