"""A server whose functions say who called them, behind any kind of event."""

from collections.abc import Mapping
from typing import Any, Final

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.access import Access
from mcp_stateless.aws import LambdaHandler
from mcp_stateless.endpoint import Endpoint
from mcp_stateless.exchange import Environment
from mcp_stateless.identity import Identify
from mcp_stateless.testing import lambda_context
from mcp_stateless.testing.gateway import to_http_response
from tests.http.door import Answer, Handler

ANYBODY: Final[dict[str, Any]] = {"issuer": "", "subject": "", "client": None, "scopes": [], "anonymous": True}


def who(ctx: Context[None]) -> dict[str, Any]:
    """Say who calls."""
    caller = ctx.principal
    return {
        "issuer": caller.issuer,
        "subject": caller.subject,
        "client": caller.client_id,
        "scopes": sorted(caller.scopes),
        "anonymous": caller.is_anonymous,
    }


def telling(server: MCPServer) -> MCPServer:
    """Offers `who` as a tool, `subject` as a prompt and a resource, and a tool that needs scopes."""
    server.tool()(who)

    @server.prompt()
    def subject(ctx: Context[None]) -> str:
        """Say who calls."""
        return ctx.principal.subject

    @server.resource("caller://subject")
    def caller(ctx: Context[None]) -> str:
        """Say who calls."""
        return ctx.principal.subject

    @server.tool(scopes=["write", "admin"])
    def change() -> str:
        """Change something."""
        return "changed"

    return server


def identified(identity: str, **settings: object) -> MCPServer:
    given = {"identity": identity, **settings}
    return telling(MCPServer("telling", "1", settings=Settings.model_validate(given)))


def identified_by(identify: Identify, identity: str, **settings: object) -> Handler:
    """A handler put together as `MCPServer` does it, with a source of identity that a test has made."""
    server = identified("none")
    given = Settings.model_validate({"identity": identity, **settings})
    endpoint = Endpoint(server.registry, Environment(given), Access(given, identify))
    return LambdaHandler(endpoint, given)


def asked(answer: Answer) -> dict[str, Any]:
    """What `who` said."""
    found: dict[str, Any] = answer.result["structuredContent"]
    return found


def caller_of(handler: Handler, event: Mapping[str, Any]) -> Answer:
    """The answer to an event that was changed by hand."""
    response = to_http_response(handler(dict(event), lambda_context()))
    return Answer(response.status, dict(response.headers), response.body)
