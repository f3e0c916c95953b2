"""Programs of the examples that serve HTTP, in processes of their own."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Server:
    """A program, in a process of its own. It keeps its port when it is started again.

    Args:
        program: The file in the folder of examples.
        options: Its options.
        environment: Variables beside those of this process.
    """

    def __init__(self, program, *options, **environment):
        self.port = 0
        self._command = [sys.executable, str(EXAMPLES / program), *map(str, options)]
        self._environment = {**os.environ, **environment}

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def start(self):
        self.process = subprocess.Popen(
            [*self._command, "--port", str(self.port)],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=self._environment,
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
