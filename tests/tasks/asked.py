"""A call at 2025-11-25 that has come to its questions, as the tests of questions and of answers begin."""

import asyncio
from typing import Any

from pydantic import BaseModel

from mcp_stateless import Context
from mcp_stateless.calls.store import CallStore
from tests.http.door import JsonObject
from tests.tasks.deployment import Deployment, LegacyClient, last_id, requests, response, tool


class Name(BaseModel):
    name: str


async def asks(ctx: Context[None]) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("Name?", Name, key="name")
    return answer.data.name if answer.action == "accept" else answer.action


async def asks_two(ctx: Context[None]) -> str:
    """Ask for two names at once."""
    answers = await asyncio.gather(ctx.elicit("One?", Name, key="one"), ctx.elicit("Two?", Name, key="two"))
    return " ".join(answer.data.name if answer.action == "accept" else answer.action for answer in answers)


class Asked:
    """A call that has come to its question: the deployment, the client, and the stream with the question in it."""

    def __init__(self, fn: Any, store: CallStore, *, long_running: bool = True, **settings: Any) -> None:
        self.deployment = Deployment(tool(fn, long_running=long_running), store, **settings)
        self.client = LegacyClient(self.deployment)
        self.primed = self.client.call(meta={"progressToken": "t"})
        assert response(self.primed) is None
        if long_running:
            assert requests(self.primed) == []
            self.deployment.work()
            self.stream = self.client.poll(last_id(self.primed))
        else:
            self.stream = self.primed
        self.questions = requests(self.stream)

    def ended(self) -> JsonObject:
        """Work and poll; the response has to be there then."""
        self.deployment.work()
        found = response(self.client.poll(last_id(self.stream)))
        assert found is not None
        return found

    def result(self) -> JsonObject:
        result: JsonObject = self.ended()["result"]
        return result
