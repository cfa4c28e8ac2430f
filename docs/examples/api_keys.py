"""Bearer tokens that say nothing by themselves: API keys, of which only digests are kept."""

import hashlib

from mcp_stateless import Context, MCPServer, Principal, Settings
from mcp_stateless.errors import Unauthorized

# region verifier
DIGESTS = {"13e96b4aa10ec8017babfa81caf8832987e2590129d9598bf784371387e7e6b1": "alice"}


class ApiKeys:
    """Whose key it is."""

    async def verify(self, token: str, audience: str) -> Principal:
        """Find the owner by the key's digest."""
        owner = DIGESTS.get(hashlib.sha256(token.encode()).hexdigest())
        if owner is None:
            raise Unauthorized("no such key")
        return Principal("api-keys", owner, scopes=frozenset({"read"}))


server = MCPServer("keyed", version="1.0.0", token_verifier=ApiKeys(), settings=Settings(identity="bearer"))
# endregion


@server.tool()
def who_am_i(ctx: Context) -> str:
    """Say whose key it was."""
    return ctx.principal.subject


lambda_handler = server.lambda_handler()
