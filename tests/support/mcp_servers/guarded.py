"""A server for tests that demands OAuth, and is its own authorization server.

`python guarded.py http PORT`. Whoever asks for a code gets one: nobody has to log in.
"""

import secrets
import sys
import time
import warnings

from mcp.server import MCPServer
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    RefreshToken,
    construct_redirect_uri,
)
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions
from mcp.server.mcpserver import Context
from mcp.shared.auth import OAuthToken

warnings.simplefilter("ignore")


class Provider:
    """Keeps clients, codes and tokens in memory."""

    def __init__(self):
        self.clients, self.codes, self.tokens, self.refreshing = {}, {}, {}, {}

    async def get_client(self, client_id):
        return self.clients.get(client_id)

    async def register_client(self, client_info):
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client, params):
        code = AuthorizationCode(
            code=secrets.token_urlsafe(24),
            scopes=params.scopes or [],
            expires_at=time.time() + 60,
            client_id=client.client_id,
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        self.codes[code.code] = code
        return construct_redirect_uri(str(params.redirect_uri), code=code.code, state=params.state)

    async def load_authorization_code(self, client, authorization_code):
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client, authorization_code):
        del self.codes[authorization_code.code]
        return self.give(client.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client, refresh_token):
        return self.refreshing.get(refresh_token)

    async def exchange_refresh_token(self, client, refresh_token, scopes):
        return self.give(client.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token):
        return self.tokens.get(token)

    async def revoke_token(self, token):
        self.tokens.pop(token.token, None)

    def give(self, client_id, scopes, resource):
        about = {"client_id": client_id, "scopes": scopes, "resource": resource}
        access = AccessToken(token=f"access-{secrets.token_urlsafe(24)}", **about)
        refresh = RefreshToken(token=f"refresh-{secrets.token_urlsafe(24)}", **about)
        self.tokens[access.token], self.refreshing[refresh.token] = access, refresh
        return OAuthToken(access_token=access.token, expires_in=3600, refresh_token=refresh.token)


def make(port):
    address = f"http://127.0.0.1:{port}"
    server = MCPServer(
        "guarded",
        auth_server_provider=Provider(),
        auth=AuthSettings(
            issuer_url=address,
            resource_server_url=f"{address}/mcp",
            client_registration_options=ClientRegistrationOptions(enabled=True),
            validate_token_resource=True,
        ),
    )

    @server.tool()
    def reveal(context: Context) -> str:
        return f"it was {(context.headers or {})['authorization']}"

    return server


def main(arguments):
    make(int(arguments[1])).run("streamable-http", port=int(arguments[1]))


if __name__ == "__main__":
    main(sys.argv[1:])
