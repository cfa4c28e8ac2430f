"""Bearer tokens that say nothing by themselves: API keys, of which only digests are kept."""

import hashlib

from mcp_stateless import Context, MCPServer, Principal, Settings
from mcp_stateless.errors import Unauthorized

# region verifier
DIGESTS = {"8a5edab282632443219e051e4ade2d1d5bbc671c781051bf1437897cbdfea0f1": "alice"}


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
