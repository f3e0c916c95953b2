"""Limits of the installer of packages, which reads what strangers wrote."""

import subprocess
import sys

import pytest

from callslip import PythonRunner, ScriptRefused
from callslip.sandbox import _native
from sandbox.offered import need

LAUNCHER = _native.find_launcher()


def installer(folder, code, *, memory=1 << 28, seconds=2):
    limits = [str(1 << 20), str(memory), str(seconds)]
    command = [LAUNCHER, "--installer", *limits, str(folder), sys.executable, "-I", "-c", code]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_the_installer_has_limits_of_memory_time_and_files(tmp_path):
    assert installer(tmp_path, "print(bytearray(1 << 20)[0])").stdout == "0\n"
    assert "MemoryError" in installer(tmp_path, "bytearray(1 << 29)").stderr
    assert installer(tmp_path, "while True: pass", seconds=1).returncode == -24
    large = installer(tmp_path, f"open({str(tmp_path / 'f')!r}, 'wb').write(bytes(2 << 20))")
    assert "File too large" in large.stderr


@pytest.mark.parametrize(("signal", "what"), [("ABRT", "memory"), ("XCPU", "processor time")])
def test_a_bomb_in_a_description_is_told_as_such(tmp_path, monkeypatch, signal, what):
    need("auto")
    uv = tmp_path / "uv"
    uv.write_text(f"#!/bin/sh\nkill -{signal} $$\n")
    uv.chmod(0o755)
    monkeypatch.setattr(_native, "find_uv", lambda: str(uv))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with PythonRunner(deps=lambda _: True) as runner, pytest.raises(ScriptRefused) as refused:
        runner.run('# dependencies = ["bomb"]\nprint("ran")')
    assert refused.value.code == "dependency_install_failed"
    assert f"too much {what}" in str(refused.value)
