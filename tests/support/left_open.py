"""Files and threads of this process that some work has left open."""

import gc
import threading
import time
from pathlib import Path


class Open:
    """The files and threads that are there now."""

    def __init__(self):
        gc.collect()
        self.threads = set(threading.enumerate())
        self.files = set()
        for entry in Path("/proc/self/fd").iterdir():
            # The folder itself is open while it is read.
            try:
                self.files.add((entry.name, str(entry.readlink())))
            except OSError:
                continue

    def since(self, before):
        """Name what was not there before, files and threads."""
        files = [f"{number} {target}" for number, target in sorted(self.files - before.files)]
        return files, [thread.name for thread in self.threads - before.threads]


def check_nothing_is_left(before, times, seconds=10):
    """Check that work that was done so many times has left nothing open.

    Other tests have run in this process, and a thread of theirs may open a file at any moment:
    what is left after each time is told from that by its number.
    """
    until = time.monotonic() + seconds
    while any(new := Open().since(before)) and time.monotonic() < until:
        time.sleep(0.05)
    assert all(len(names) < times / 2 for names in new), f"left after {times} times: {new}"
