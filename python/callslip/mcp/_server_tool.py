"""One tool of an MCP server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from callslip._failure import log_failure, message_of
from callslip._redaction import redact_likely_secrets
from callslip.mcp._session import ServerFailure
from callslip.tools import Context, Effect, NeedsApproval, Outcome
from callslip.tools._retries import retries_by_effect
from callslip.tools._schema_tool import SchemaTool

if TYPE_CHECKING:
    from mcp_types import Tool as ToolOffer

    from callslip.mcp._server import MCPServer

__all__ = ["ServerTool"]


class ServerTool(SchemaTool):
    """A tool of an MCP server.

    Attributes:
        own_name: The server's own name for it, without prefix.
    """

    own_name: str

    def __init__(
        self,
        server: MCPServer,
        offer: ToolOffer,
        *,
        prefix: str,
        needs_approval: NeedsApproval,
        repeatable: bool,
        retries: int,
    ) -> None:
        async def perform(arguments: dict[str, Any], context: Context | None) -> Any:
            return await server.call(offer.name, arguments, context)

        self.own_name = offer.name
        secrets = server._transport.secrets
        hints = offer.annotations
        readonly = hints is not None and hints.read_only_hint is True
        idempotent = hints is not None and hints.idempotent_hint is True
        effect: Effect = (
            "pure" if readonly else "idempotent" if idempotent or repeatable else "once"
        )
        super().__init__(
            perform,
            name=f"{prefix}{offer.name}",
            description=secrets.redact(offer.description or offer.title or ""),
            parameters=secrets.redact_schema(offer.input_schema),
            readonly=readonly,
            effect=effect,
            needs_approval=needs_approval,
            repeatable=repeatable,
            retries=retries_by_effect(effect, readonly=readonly, most=retries),
        )

    def _outcome_of_error(self, error: Exception) -> Outcome:
        """Return the outcome of a failed call, with the whole message of the server."""
        if not isinstance(error, ServerFailure):
            return super()._outcome_of_error(error)
        log_failure(self.name, error)
        message = redact_likely_secrets(message_of(error))
        return Outcome.Error(f"Error calling tool '{self.name}': {message}")
