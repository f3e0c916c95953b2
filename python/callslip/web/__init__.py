"""What web applications with agents need: a guard against other sites.

app = Guard(app, hosts=["chat.example.com"], token=os.environ["CHAT_TOKEN"])
"""

from __future__ import annotations

from callslip.web._guard import Guard

__all__ = ["Guard"]
