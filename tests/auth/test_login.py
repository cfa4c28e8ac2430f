"""The official Python client logs in: from the 401 over a real authorization server to a call, and to more scopes."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, Final
from urllib.parse import parse_qs, urlsplit

import httpx2
import pytest
from mcp import Client
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.testing.events import API_DOMAIN, URL_DOMAIN, Source
from mcp_stateless.testing.transport_httpx2 import LambdaTransport
from tests.auth.authorization_server import AuthorizationServer

SECONDS: Final = 20
REDIRECT: Final = "http://localhost:3030/callback"
REMAPPED: Final = "x-amzn-remapped-www-authenticate"


@pytest.fixture
def authority() -> Iterator[AuthorizationServer]:
    with AuthorizationServer() as running:
        yield running


def protected(authority: AuthorizationServer, **settings: object) -> MCPServer:
    given = {
        "identity": "bearer",
        "authorization_servers": (authority.issuer,),
        "required_scopes": ("use",),
        **settings,
    }
    server = MCPServer("protected", "1", settings=Settings.model_validate(given))

    @server.tool(structured_output=False)
    def who(ctx: Context[None]) -> str:
        """Say who calls."""
        return f"{ctx.principal.subject} may {' '.join(sorted(ctx.principal.scopes))}"

    @server.tool(structured_output=False, scopes=["write"])
    def write(ctx: Context[None]) -> str:
        """Write something."""
        return f"{ctx.principal.subject} wrote with {' '.join(sorted(ctx.principal.scopes))}"

    return server


class Memory(TokenStorage):
    """What a client keeps of its logins."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


class Ways(httpx2.AsyncBaseTransport):
    """To the function through Lambda events, and to everything on this machine over real connections.

    `repairs`: a proxy in front of API Gateway gives a renamed header its name back. What an execute-api host has
    outside its stage is not the function's.
    """

    def __init__(self, server: MCPServer, source: Source, stage: str, repairs: bool) -> None:
        self._function = LambdaTransport(server, source, stage=stage)
        self._machine = httpx2.AsyncHTTPTransport()
        self._stage = "" if stage == "$default" else f"/{stage}"
        self._repairs = repairs
        self.seen: list[tuple[str, int]] = []

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if request.url.host == "127.0.0.1":
            return await self._machine.handle_async_request(request)
        if not request.url.path.startswith(f"{self._stage}/"):
            response = httpx2.Response(403, json={"message": "Forbidden"}, request=request)
        else:
            response = await self._function.handle_async_request(request)
        if self._repairs and REMAPPED in response.headers:
            response.headers["www-authenticate"] = response.headers.pop(REMAPPED)
        self.seen.append((request.url.path, response.status_code))
        return response

    async def aclose(self) -> None:
        await self._machine.aclose()


class Browser:
    """Follows the client to the authorization server, and brings back what it is redirected with."""

    def __init__(self) -> None:
        self.answer: dict[str, str] = {}

    async def go(self, url: str) -> None:
        async with httpx2.AsyncClient() as http:
            response = await http.get(url)
        assert response.status_code == 302, response.text
        target = response.headers["location"]
        assert target.startswith(REDIRECT)
        self.answer = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}

    async def come_back(self) -> AuthorizationCodeResult:
        return AuthorizationCodeResult(**self.answer)


def logged_in(
    url: str, ways: Ways, conversation: Callable[[Client], Awaitable[list[str]]], memory: Memory, mode: str
) -> list[str]:
    browser = Browser()
    metadata = OAuthClientMetadata(
        redirect_uris=[AnyUrl(REDIRECT)], client_name="client", token_endpoint_auth_method="none"
    )
    provider = OAuthClientProvider(url, metadata, memory, browser.go, browser.come_back)

    async def main() -> list[str]:
        async with (
            httpx2.AsyncClient(transport=ways, auth=provider) as http,
            Client(streamable_http_client(url, http_client=http), mode=mode, read_timeout_seconds=SECONDS) as client,
        ):
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(main(), SECONDS))


async def call_twice(client: Client) -> list[str]:
    """A call that the first token is good for, and one that needs more."""
    texts = []
    for name in ("who", "write", "who"):
        [block] = (await client.call_tool(name)).content
        texts.append(str(getattr(block, "text", block)))
    return texts


SAID: Final = ["alice may use", "alice wrote with use write", "alice may use write"]
WALK: Final = ["register", "authorize use", "token", "keys", "authorize use write", "token"]

WAYS: Final[list[tuple[str, Source, str, bool]]] = [
    (f"https://{URL_DOMAIN}/mcp", "function_url", "$default", False),
    # B135: API Gateway renames the challenge; clients find the metadata at the host's root.
    (f"https://{API_DOMAIN}/mcp", "http_api", "$default", False),
    (f"https://{API_DOMAIN}/mcp", "http_api", "$default", True),
    # Behind a stage there is nothing at the root: it takes the challenge under its own name.
    (f"https://{API_DOMAIN}/prod/mcp", "http_api", "prod", True),
    (f"https://{API_DOMAIN}/prod/mcp", "rest_api", "prod", True),
]


@pytest.mark.parametrize(("url", "source", "stage", "repairs"), WAYS)
@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_a_client_logs_in_calls_and_asks_for_more(
    authority: AuthorizationServer, url: str, source: Source, stage: str, repairs: bool, mode: str
) -> None:
    ways, memory = Ways(protected(authority), source, stage, repairs), Memory()
    if source in ("http_api", "rest_api") and not repairs:
        # A step-up is told in the header alone.
        assert logged_in(url, ways, first_call, memory, mode) == SAID[:1]
        assert authority.log == WALK[:4]
    else:
        assert logged_in(url, ways, call_twice, memory, mode) == SAID
        assert authority.log == WALK
        assert 403 in [status for path, status in ways.seen if path.endswith("/mcp")]
    assert ways.seen[0][1] == 401
    assert any("/.well-known/oauth-protected-resource" in path and status == 200 for path, status in ways.seen)


async def first_call(client: Client) -> list[str]:
    [block] = (await client.call_tool("who")).content
    return [str(getattr(block, "text", block))]


def test_a_client_that_kept_its_token_does_not_log_in_again(authority: AuthorizationServer) -> None:
    url, memory, server = f"https://{URL_DOMAIN}/mcp", Memory(), protected(authority)
    for _ in range(2):
        ways = Ways(server, "function_url", "$default", False)
        assert logged_in(url, ways, first_call, memory, "auto") == SAID[:1]
    assert authority.log == WALK[:4]
    assert 401 not in [status for _, status in ways.seen]


def test_a_token_for_one_server_is_none_for_another(authority: AuthorizationServer) -> None:
    memory = Memory()
    ways = Ways(protected(authority), "function_url", "$default", False)
    logged_in(f"https://{URL_DOMAIN}/mcp", ways, first_call, memory, "auto")
    assert memory.tokens is not None

    async def main() -> int:
        other = Ways(protected(authority), "http_api", "$default", False)
        async with httpx2.AsyncClient(transport=other) as http:
            headers = {"authorization": f"Bearer {memory.tokens.access_token}" if memory.tokens else ""}
            ask: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
            return (await http.post(f"https://{API_DOMAIN}/mcp", json=ask, headers=headers)).status_code

    assert asyncio.run(main()) == 401
