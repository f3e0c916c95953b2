"""A real Jupyter kernel, and what the front end of a notebook does with it."""

from __future__ import annotations

import gc
import os
import sys
import warnings
from contextlib import contextmanager


class Kernel:
    """A running kernel, and what a notebook's front end does with it."""

    def __init__(self, manager, client):
        self.manager = manager
        self.client = client
        self.prompts = []

    def run(self, code, answers=(), *, allow_stdin=True):
        """Run a cell; returns its text, and the reply's status."""
        given = iter(answers)
        shown = []
        self.displayed = []
        self.updates = []

        def output(message):
            content = message["content"]
            if message["msg_type"] == "stream":
                shown.append(content["text"])
            elif message["msg_type"] == "error":
                shown.append("\n".join(content["traceback"]))
            elif message["msg_type"] in {"display_data", "execute_result"}:
                self.displayed.append(content["data"])
            elif message["msg_type"] == "update_display_data":
                self.updates.append(content["data"])

        def ask(message):
            self.prompts.append((message["content"]["prompt"], message["content"]["password"]))
            self.client.input(next(given))

        reply = self.client.execute_interactive(
            code, allow_stdin=allow_stdin, stdin_hook=ask, output_hook=output, timeout=60
        )
        return "".join(shown), reply["content"]["status"]


@contextmanager
def running_kernel(*paths):
    """Run a kernel of this interpreter, which imports from these folders too; yields its parts."""
    from jupyter_client.manager import KernelManager
    from jupyter_core.utils import ensure_event_loop

    paths = [*map(str, paths), *(path for path in sys.path if path)]
    manager = KernelManager(kernel_name="python3")
    # The kernel of this interpreter, whatever else is installed on the machine.
    manager.kernel_spec.argv[0] = sys.executable
    manager.start_kernel(env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)})
    client = manager.blocking_client()
    client.start_channels()
    client.wait_for_ready(timeout=200)
    yield manager, client
    client.stop_channels()
    # Not at once: what its runners hold is removed when it ends.
    manager.shutdown_kernel()
    manager.cleanup_resources()
    # Jupyter's blocking calls leave loops open, of which others would be told.
    ensure_event_loop().close()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()
