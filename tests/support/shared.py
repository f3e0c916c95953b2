"""Other people's texts, outside the project: `make test-shared` alone says where they are."""

import os
from pathlib import Path

SHARED = Path(os.environ.get("CALLSLIP_SHARED", os.devnull))
SEEDS = SHARED / "seeds"
HOSTILE_SCRIPTS = SHARED / "conformance" / "hostile_scripts.jsonl"
