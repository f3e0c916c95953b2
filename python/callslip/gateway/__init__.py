"""Reliable tool calls and structured output for existing clients, from any model.

Install with `pip install "callslip[web]"`.

app = gateway({"qwen": LocalModel("qwen.gguf")})
serve(LocalModel("qwen.gguf"), port=8000)
"""

from __future__ import annotations

from callslip._base.extras import needs

with needs("callslip[web]"):
    from callslip.gateway._app import Gateway
    from callslip.gateway._open import GatewayOptions, gateway
    from callslip.gateway._serve import serve

__all__ = ["Gateway", "GatewayOptions", "gateway", "serve"]
