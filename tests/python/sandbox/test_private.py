"""Files of scripts and runs that other users of the machine can't read."""

import os
import tempfile
from pathlib import Path

import pytest

from callslip import Agent, PythonRunner, ScriptedModel, TicketStore
from sandbox.offered import ALL, need
from scripted import finish

LEAVES = """
import os, sys
os.makedirs("out/folder")
for name in ("out/a.txt", "out/folder/b.txt", "c.txt"):
    open(name, "w").write("secret")
    os.chmod(name, 0o666)
print("here", flush=True)
sys.stdin.read()
import time; time.sleep(0.2)
"""


def open_to_others(folder):
    """What others may read, list or change below a folder, and may reach."""
    found = []
    for above, folders, files in os.walk(folder):
        is_open = {one for one in [*folders, *files] if Path(above, one).lstat().st_mode & 0o077}
        found += [Path(above, one) for one in is_open]
        folders[:] = [one for one in folders if one in is_open]
    return found


@pytest.mark.parametrize("profile", ALL)
def test_nobody_else_reads_a_running_script_its_files_or_artifacts(profile, tmp_path, monkeypatch):
    need(profile)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    seen = []

    def look(event):
        if event.kind == "stdout" and "here" in event.data["text"]:
            seen.append((list(tmp_path.iterdir()), open_to_others(tmp_path)))

    artifacts = tmp_path / "artifacts"
    with (
        PythonRunner(profile=profile, on_event=look, artifacts=artifacts) as runner,
        runner.session() as session,
    ):
        result = session.run(LEAVES)
        assert result.status == "ok", result.stderr
        ((made, shown),) = seen
        assert made
        assert shown == []
        assert open_to_others(tmp_path) == []
        assert len(result.artifacts) == 2
        for one in result.artifacts:
            assert one.file.stat().st_mode & 0o777 == 0o600
            saved = one.save(tmp_path / "saved")
            assert saved.stat().st_mode & 0o777 == 0o600
        assert open_to_others(tmp_path) == []


def test_nobody_else_reads_a_store_or_a_page(tmp_path):
    with TicketStore(tmp_path / "runs.db") as store:
        agent = Agent(ScriptedModel([finish()]), protocol="react", store=store)
        agent.run_sync("x").run.to_html(tmp_path / "page.html")
        assert len(list(tmp_path.iterdir())) >= 4
        assert open_to_others(tmp_path) == []
    # A store that others share stays so.
    (tmp_path / "runs.db").chmod(0o640)
    with TicketStore(tmp_path / "runs.db"):
        assert (tmp_path / "runs.db").stat().st_mode & 0o777 == 0o640
