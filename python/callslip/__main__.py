"""`python -m callslip`."""

from __future__ import annotations

import sys

from callslip.cli import main

if __name__ == "__main__":
    sys.exit(main())
