"""`check_call`: how a call that outlived its rounds is asked for by its ticket."""

from typing import Any

from pydantic import BaseModel

from mcp_stateless import Context
from mcp_stateless.calls import waiting
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from tests.http.door import Answer
from tests.tasks.deployment import FORMS, Deployment, Unreadable, text_of, tool


class Name(BaseModel):
    name: str


async def done() -> str:
    """Work."""
    return "done"


async def asks(ctx: Context[None]) -> str:
    """Ask."""
    return (await ctx.elicit("Name?", Name, key="name")).action


def call(deployment: Deployment, **params: Any) -> Answer:
    return deployment.call(capabilities=FORMS, **params)


def again(deployment: Deployment, asked: Answer) -> Answer:
    return call(deployment, requestState=asked.result["requestState"])


def test_a_question_that_comes_after_the_ticket_is_told_to_who_checks() -> None:
    deployment = Deployment(tool(asks), MemoryCallStore(), max_rounds=1)
    ticket = text_of(again(deployment, call(deployment)).result).split()[-1]
    deployment.work()
    result = deployment.call("check_call", {"ticket": ticket}, capabilities={}).result
    assert (result["isError"], "Call tool again" in text_of(result)) == (True, True)


def test_a_ticket_is_good_once_the_store_answers_again() -> None:
    store = Unreadable()
    deployment = Deployment(tool(done), store, max_rounds=1)
    ticket = text_of(again(deployment, call(deployment)).result).split()[-1]
    store.down = True
    result = deployment.call("check_call", {"ticket": ticket}, capabilities={}).result
    assert (result["isError"], "Try again" in text_of(result)) == (True, True)
    store.down = False
    deployment.work()
    assert text_of(deployment.call("check_call", {"ticket": ticket}, capabilities={}).result) == "done"


def test_a_ticket_of_a_call_that_is_gone_says_that_it_is(store: CallStore) -> None:
    deployment = Deployment(tool(done), store, max_rounds=1, call_ttl_s=600)
    ticket = text_of(again(deployment, call(deployment)).result).split()[-1]
    deployment.clock.advance(600)
    assert deployment.call("check_call", {"ticket": ticket}, capabilities={}).result["isError"]


def test_a_ticket_of_another_purpose_or_caller_gives_nothing(store: CallStore) -> None:
    deployment = Deployment(tool(done), store)
    state = call(deployment).result["requestState"]
    for ticket in (state, state.removeprefix(waiting.PREFIX), "garbage", ""):
        result = deployment.call("check_call", {"ticket": ticket}, capabilities={}).result
        assert result["isError"]
        assert "does not hold" in text_of(result)
