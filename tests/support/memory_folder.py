"""A place in memory for files whose syncs need not outlive the machine."""

import os
from pathlib import Path

_MEMORY = Path("/dev/shm")


def in_memory(room: int = 0) -> Path | None:
    """Return a folder that lies in memory, or `None` where there is none to use.

    Args:
        room: Bytes that must be free there.
    """
    if not os.access(_MEMORY, os.W_OK):
        return None
    about = os.statvfs(_MEMORY)
    is_usable = about.f_bavail * about.f_frsize >= room and not about.f_flag & os.ST_NOEXEC
    return _MEMORY if is_usable else None
