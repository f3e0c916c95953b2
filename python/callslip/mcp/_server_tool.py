"""One tool of an MCP server, and the tools that read its resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from callslip._base.failure import message_of
from callslip._base.redaction import redact_likely_secrets
from callslip.mcp._faults import ServerFailure
from callslip.tools import Context, Effect, NeedsApproval, Outcome
from callslip.tools._levels import without_levels
from callslip.tools._retries import retries_by_effect
from callslip.tools._schema_tool import SchemaTool

if TYPE_CHECKING:
    from mcp_types import Tool as ToolOffer

    from callslip.mcp._server import MCPServer

__all__ = ["ResourceTool", "ServerTool"]


class _RequestTool(SchemaTool):
    """A tool whose calls are requests to an MCP server."""

    def _outcome_of_error(self, error: Exception) -> Outcome:
        """Return the outcome of a failed call, with the whole message of the server."""
        outcome = super()._outcome_of_error(error)
        if not isinstance(error, ServerFailure) or not isinstance(outcome, Outcome.Error):
            return outcome
        message = redact_likely_secrets(message_of(error))
        return Outcome.Error(
            f"Error calling tool '{self.name}': {message}",
            transient=outcome.transient,
            again=outcome.again,
            wait=outcome.wait,
        )


class ServerTool(_RequestTool):
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
        untrusted: bool,
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
            parameters=without_levels(secrets.redact_schema(offer.input_schema)),
            readonly=readonly,
            effect=effect,
            needs_approval=needs_approval,
            repeatable=repeatable,
            untrusted=untrusted,
            retries=retries_by_effect(effect, readonly=readonly, most=retries),
        )


class ResourceTool(_RequestTool):
    """`list_resources` or `read_resource` of an MCP server.

    Attributes:
        NAMES: The names of these tools.
        own_name: The name, without prefix.
    """

    NAMES: ClassVar[tuple[str, str]] = ("list_resources", "read_resource")
    own_name: str

    def __init__(
        self,
        server: MCPServer,
        own_name: str,
        *,
        prefix: str,
        needs_approval: NeedsApproval,
        repeatable: bool,
        untrusted: bool,
        retries: int,
    ) -> None:
        listing, reading = (f"{prefix}{name}" for name in self.NAMES)
        lists = own_name == self.NAMES[0]

        async def perform(arguments: dict[str, Any], _: Context | None) -> Any:
            if lists:
                return await server._list_for_model()
            return await server._read_for_model(arguments["uri"])

        self.own_name = own_name
        uri = {
            "type": "string",
            "description": f"From {listing}, or a template from there with its fields filled in.",
        }
        properties, required = ({}, []) if lists else ({"uri": uri}, ["uri"])
        name = server.name
        super().__init__(
            perform,
            name=listing if lists else reading,
            description=f"List the resources of {name}: documents and data for {reading}."
            if lists
            else f"Read a resource of {name}.",
            parameters={"type": "object", "properties": properties, "required": required},
            readonly=True,
            effect="pure",
            needs_approval=needs_approval,
            repeatable=repeatable,
            untrusted=untrusted,
            retries=retries_by_effect("pure", readonly=True, most=retries),
        )
