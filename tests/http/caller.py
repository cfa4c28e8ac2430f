"""A client of one tool that asks: it starts a call, and answers in rounds that reach a new environment each."""

from collections.abc import Callable
from typing import Any

from pydantic import BaseModel

from mcp_stateless import Context, MCPServer, Settings
from tests.http.door import Answer, Door, Weight

KEY = "a signing key of thirty-two bytes"
EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}


class Name(BaseModel):
    name: str


def made(version: str = "1", **settings: object) -> MCPServer:
    return MCPServer("sample", version, settings=Settings.model_validate({"signing_keys": (KEY,), **settings}))


class Caller:
    """A client of one tool; every request reaches a fresh environment of the same server."""

    def __init__(self, weight: Weight, build: Callable[[], MCPServer], name: str = "tool", **arguments: object) -> None:
        self.door = Door(lambda event, context: weight(build())(event, context))
        self.params: dict[str, Any] = {"name": name, "arguments": arguments}
        self.method = "tools/call"
        self.capabilities = EVERYTHING

    def start(self) -> Answer:
        return self.door.modern(self.method, self.params, capabilities=self.capabilities)

    def reply(self, asked: Answer, answers: object = None, **params: object) -> Answer:
        """The next round: the same call with the state of `asked` and these answers."""
        more: dict[str, Any] = {**self.params, "requestState": state(asked), **params}
        if answers is not None:
            more["inputResponses"] = answers
        return self.door.modern(self.method, more, capabilities=self.capabilities, request_id=2)


def state(asked: Answer) -> str:
    assert asked.result["resultType"] == "input_required", asked.json
    found: str = asked.result["requestState"]
    return found


def questions(asked: Answer) -> dict[str, Any]:
    state(asked)
    found: dict[str, Any] = asked.result["inputRequests"]
    return found


def accept(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def tool(fn: Callable[..., Any], **settings: Any) -> Callable[[], MCPServer]:
    """A server of one tool, named `tool`."""

    def build() -> MCPServer:
        server = made(**settings)
        server.tool("tool", description="Ask.")(fn)
        return server

    return build


async def named(ctx: Context[None]) -> str:
    answer = await ctx.elicit("What is your name?", Name, key="name")
    return f"{answer.action}:{answer.data.name if answer.action == 'accept' else ''}"


def named_blocking(ctx: Context[None]) -> str:
    answer = ctx.blocking.elicit("What is your name?", Name, key="name")
    return f"{answer.action}:{answer.data.name if answer.action == 'accept' else ''}"


async def not_asking(ctx: Context[None]) -> str:
    return "nothing to ask"
