"""What all tests share."""

import os

from hypothesis import settings

# CI tries the same examples each time; everywhere else new ones are looked for.
settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")
