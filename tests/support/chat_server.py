"""The chat of the examples, in a process of its own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

APP = Path(__file__).resolve().parents[2] / "examples/chat/app.py"


class Server:
    """The program, in a process of its own."""

    def __init__(self, path):
        self.path = path
        self.port = 0

    def start(self):
        self.process = subprocess.Popen(
            [sys.executable, str(APP), "--store", str(self.path), "--port", str(self.port)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
        )
        lines = []
        for line in self.process.stderr:
            lines.append(line)
            if found := re.search(r"running on http://127\.0\.0\.1:(\d+)", line):
                self.port = int(found[1])
                return
        raise AssertionError("".join(lines))

    def kill(self):
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait(30)
        self.process.stderr.close()
