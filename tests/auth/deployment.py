"""A deployment behind a JWT authorizer, and callers of it; and everything a caller can be given to come back with."""

from collections.abc import Callable
from typing import Any, Final

from pydantic import BaseModel

from mcp_stateless import Context, MCPServer
from mcp_stateless.calls.memory import MemoryCallStore
from tests.http.door import Answer, Door
from tests.tasks.deployment import Deployment, LegacyClient

POLLER: Final = "2025-11-25"


class Word(BaseModel):
    word: str


def offer(server: MCPServer) -> None:
    """Tools whose results tell the secret that their caller brought."""

    @server.tool(long_running=True, structured_output=False)
    async def long(secret: str, ctx: Context[None]) -> str:
        """Take long."""
        await ctx.report_progress(1, 2, secret)
        return f"{ctx.principal.subject}: {secret}"

    @server.tool(long_running=True, structured_output=False)
    async def long_asks(secret: str, ctx: Context[None]) -> str:
        """Take long, and ask."""
        answer = await ctx.elicit(f"What of {secret}?", Word, key="word")
        return f"{secret}: {answer.data.word if answer.action == 'accept' else answer.action}"

    @server.tool(structured_output=False)
    async def asks(secret: str, ctx: Context[None]) -> str:
        """Ask."""
        answer = await ctx.elicit(f"What of {secret}?", Word, key="word")
        return f"{secret}: {answer.data.word if answer.action == 'accept' else answer.action}"

    @server.tool(long_running=True, structured_output=False)
    async def told(ctx: Context[None]) -> str:
        """Say what is known of the request."""
        return f"{ctx.principal!r} {sorted(ctx.principal.claims)} {sorted(ctx.headers)}"


class Behind(Deployment):
    """The deployment; `be(...)` says whose requests come next, `as_door` is a caller's own way in."""

    def __init__(self, offered: Callable[[MCPServer], object] = offer, **settings: object) -> None:
        self.memory = MemoryCallStore()
        given: dict[str, Any] = {"identity": "jwt_authorizer", **settings}
        super().__init__(offered, self.memory, **given)

    def as_door(self, subject: str | None, *, issuer: str = "https://idp.example", **claims: object) -> Door:
        named = {"iss": issuer, "sub": subject, **claims}
        authorizer: dict[str, Any] = {} if subject is None else {"authorizer": {"jwt": {"claims": named}}}
        return Door(lambda event, context: next(self._servers)(event, context), "http_api", **authorizer)

    def be(self, subject: str | None, **claims: Any) -> None:
        self.door = self.as_door(subject, **claims)

    def legacy_client(self, subject: str, **claims: Any) -> LegacyClient:
        self.be(subject, **claims)
        return LegacyClient(self)

    def get_event(self, event_id: str, headers: dict[str, str] | None = None) -> Answer:
        fields = {"accept": "text/event-stream", "mcp-protocol-version": POLLER, "last-event-id": event_id}
        return self.door.send("GET", headers=fields | (headers or {}))
