"""The official Python client 2.x in front of Lambda events, and the user who answers what it is asked."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias, TypeVar

import httpx2
import mcp_types as types
from mcp import Client
from mcp.client import ClientRequestContext
from mcp.client.streamable_http import streamable_http_client
from pydantic import FileUrl

from mcp_stateless.testing import Environment
from mcp_stateless.testing.events import Source
from mcp_stateless.testing.transport_httpx2 import LambdaTransport

T = TypeVar("T")

Action: TypeAlias = Literal["accept", "decline", "cancel"]

SECONDS: Final = 30
"""How long one conversation may take."""

STAGES: Final[dict[Source, str]] = {"rest_api": "prod"}
"""Sources whose URLs always have a stage."""


@dataclass(slots=True)
class User:
    """Answers every question of `server.py`; `seen` are the questions, in the order in which they came."""

    action: Action = "accept"
    seen: list[str] = field(default_factory=list)

    async def elicit(self, context: ClientRequestContext, params: types.ElicitRequestParams) -> types.ElicitResult:
        self.seen.append(params.message)
        form = self.action == "accept" and params.mode == "form"
        return types.ElicitResult(action=self.action, content=_filled_in(params.message) if form else None)

    async def sample(
        self, context: ClientRequestContext, params: types.CreateMessageRequestParams
    ) -> types.CreateMessageResult:
        text = params.messages[0].content
        assert isinstance(text, types.TextContent)
        self.seen.append(text.text)
        verse = types.TextContent(type="text", text="So much depends")
        return types.CreateMessageResult(role="assistant", content=verse, model="poet")

    async def roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        self.seen.append("roots")
        return types.ListRootsResult(
            roots=[types.Root(uri=FileUrl(uri)) for uri in ("file:///home/a", "file:///home/b")]
        )


def talk(
    environment: Environment,
    mode: str,
    conversation: Callable[[Client], Awaitable[T]],
    *,
    user: User | None = None,
    source: Source = "http_api",
) -> T:
    """Connect, hold the conversation and hang up. Without a user the client declares that it cannot be asked."""
    stage = STAGES.get(source, "$default")
    url = "https://mcp.example.com/mcp" if stage == "$default" else f"https://mcp.example.com/{stage}/mcp"

    async def main() -> T:
        transport = LambdaTransport(environment, source, stage=stage)
        async with (
            httpx2.AsyncClient(transport=transport) as http,
            Client(
                streamable_http_client(url, http_client=http),
                mode=mode,
                read_timeout_seconds=SECONDS,
                elicitation_callback=user.elicit if user else None,
                sampling_callback=user.sample if user else None,
                list_roots_callback=user.roots if user else None,
            ) as client,
        ):
            return await conversation(client)

    return asyncio.run(asyncio.wait_for(main(), SECONDS))


def text_of(result: types.CallToolResult) -> str:
    """The text of a result that has one block."""
    [block] = result.content
    assert isinstance(block, types.TextContent)
    return block.text


def _filled_in(message: str) -> dict[str, str | int | float | bool | list[str] | None]:
    kind, _, rest = message.partition(" ")
    if kind == "Number":
        return {"number": int(rest.removesuffix("?")) * 10}
    if kind == "Book":
        return {"agreed": True}
    return {"colour": "green" if "after blue" in message else "blue"}
