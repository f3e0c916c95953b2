"""What web applications with agents need: a guard against other sites.

app = Guard(app, hosts=["chat.example.com"], token=os.environ["CHAT_TOKEN"])
"""

from __future__ import annotations

from callslip.web._guard import Guard
from callslip.web._requests import is_own_origin, is_secure, place_of

__all__ = ["Guard", "is_own_origin", "is_secure", "place_of"]
