"""Three questions and two steps, cut at every point and resumed from every state: always one outcome."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_stateless import Context, MCPServer, Settings
from tests.http.door import Answer, Door, Weight

KEY = "a signing key of thirty-two bytes"
FORMS: dict[str, Any] = {"elicitation": {}, "roots": {}}
ROUNDS = 4
"""Three questions, one after the other, and the round that ends."""


class Name(BaseModel):
    name: str


class Crash(BaseException):
    """The environment dies here."""


class World:
    """What is outside the function: where its run is cut, and the effects of its steps."""

    def __init__(self, cut: int | None = None) -> None:
        self.cut = cut
        self.points = 0
        self.crashes = 0
        self.effects: dict[str, str] = {}
        self.keys: dict[str, list[str]] = {"reserve": [], "pay": []}

    def point(self) -> None:
        """A place where the run may be cut; each is passed several times in the life of a call."""
        self.points += 1
        if self.points == self.cut:
            self.crashes += 1
            raise Crash

    def effect(self, step: str, key: str) -> str:
        """Do something that a second time under the same key changes nothing."""
        self.point()
        self.keys[step].append(key)
        made = self.effects.setdefault(key, f"{step}-{len(self.effects)}")
        self.point()
        return made


def asynchronous(world: World) -> Callable[..., Any]:
    async def reserve(idempotency_key: str) -> str:
        return world.effect("reserve", idempotency_key)

    def pay(idempotency_key: str) -> str:
        return world.effect("pay", idempotency_key)

    async def order(ctx: Context[None]) -> dict[str, Any]:
        world.point()
        name = await ctx.elicit("Name?", Name, key="name")
        world.point()
        reserved = await ctx.step("reserve", reserve)
        world.point()
        roots = await ctx.list_roots()
        world.point()
        paid = await ctx.step("pay", pay)
        world.point()
        sure = await ctx.elicit(f"Pay {paid}?", Name)
        world.point()
        number = ctx.random.randint(0, 10**9)
        return {"name": str(name), "sure": str(sure), "root": roots[0].uri, "did": [reserved, paid], "n": number}

    return order


def blocking(world: World) -> Callable[..., Any]:
    def reserve(idempotency_key: str) -> str:
        return world.effect("reserve", idempotency_key)

    def pay(idempotency_key: str) -> str:
        return world.effect("pay", idempotency_key)

    def order(ctx: Context[None]) -> dict[str, Any]:
        world.point()
        name = ctx.blocking.elicit("Name?", Name, key="name")
        world.point()
        reserved = ctx.blocking.step("reserve", reserve)
        world.point()
        roots = ctx.blocking.list_roots()
        world.point()
        paid = ctx.blocking.step("pay", pay)
        world.point()
        sure = ctx.blocking.elicit(f"Pay {paid}?", Name)
        world.point()
        number = ctx.random.randint(0, 10**9)
        return {"name": str(name), "sure": str(sure), "root": roots[0].uri, "did": [reserved, paid], "n": number}

    return order


class Conversation:
    """A client that answers every question and sends a request again when it failed. Each reaches a new environment."""

    def __init__(self, weight: Weight, world: World, kind: Callable[[World], Callable[..., Any]]) -> None:
        ids = itertools.count()

        def build() -> MCPServer:
            settings = Settings.model_validate({"signing_keys": (KEY,)})
            server = MCPServer("sample", "1", settings=settings, new_id=lambda: f"call-{next(ids)}")
            server.tool("order", description="Order.")(kind(world))
            return server

        self.door = Door(lambda event, context: weight(build())(event, context))
        self.sent: list[dict[str, Any]] = []

    def run(self, params: dict[str, Any] | None = None) -> dict[str, Any]:
        """The result of the call, from its start or from one of the requests sent before."""
        params = params or {"name": "order", "arguments": {}}
        for _ in range(ROUNDS):
            answer = self._send(params)
            if answer.result["resultType"] == "complete":
                found: dict[str, Any] = answer.result
                return found
            params = {**params, **reply(answer)}
        pytest.fail("the call does not end")

    def _send(self, params: dict[str, Any]) -> Answer:
        self.sent.append(params)
        answer = self._post(params)
        return self._post(params) if answer.result.get("isError") else answer

    def _post(self, params: dict[str, Any]) -> Answer:
        answer = self.door.modern("tools/call", params, capabilities=FORMS)
        assert answer.status == 200
        return answer


def reply(answer: Answer) -> dict[str, Any]:
    (key, question), *rest = answer.result["inputRequests"].items()
    assert not rest
    said: dict[str, Any] = (
        {"roots": [{"uri": "file:///work"}]}
        if question["method"] == "roots/list"
        else {"action": "accept", "content": {"name": question["params"]["message"]}}
    )
    return {"requestState": answer.result["requestState"], "inputResponses": {key: said}}


def without_random(result: dict[str, Any]) -> dict[str, Any]:
    """What must be the same in two calls, too: all but the number and the text that repeats it."""
    return {key: value for key, value in result["structuredContent"].items() if key != "n"}


def uninterrupted(kind: Callable[[World], Callable[..., Any]]) -> tuple[dict[str, Any], int]:
    world = World()
    result = Conversation(lambda server: server.lambda_handler(), world, kind).run()
    assert result["isError"] is False
    assert {step: len(keys) for step, keys in world.keys.items()} == {"reserve": 1, "pay": 1}
    return result, world.points


KINDS = {"asynchronous": asynchronous, "blocking": blocking}
WANTED = {name: uninterrupted(kind) for name, kind in KINDS.items()}


def test_the_uninterrupted_call_does_each_step_once_and_passes_enough_points() -> None:
    for result, points in WANTED.values():
        assert result["structuredContent"]["did"] == ["reserve-0", "pay-1"]
        assert points > 18
    assert len({points for _, points in WANTED.values()}) == 1


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("cut", range(1, WANTED["asynchronous"][1] + 1))
def test_a_call_cut_anywhere_and_resumed_from_every_state_ends_as_if_it_never_was(
    weight: Weight, kind: str, cut: int
) -> None:
    wanted, _ = WANTED[kind]
    world = World(cut)
    conversation = Conversation(weight, world, KINDS[kind])
    result = conversation.run()
    assert without_random(result) == without_random(wanted)
    assert world.crashes == 1
    first, *resumed = conversation.sent
    assert "requestState" not in first  # sent again, it is another call
    for params in (*resumed, *reversed(resumed)):
        assert conversation.run(params) == result
    assert {step: len(set(keys)) for step, keys in world.keys.items()} == {"reserve": 1, "pay": 1}
    assert sorted(world.effects.values()) == ["pay-1", "reserve-0"]


@pytest.mark.parametrize("kind", KINDS)
def test_an_earlier_state_asks_its_own_question_again(weight: Weight, kind: str) -> None:
    conversation = Conversation(weight, World(), KINDS[kind])
    conversation.run()
    asked = []
    for params in conversation.sent[: ROUNDS - 1]:
        answer = conversation.door.modern("tools/call", params, capabilities=FORMS)
        asked.append([question["method"] for question in answer.result["inputRequests"].values()])
    assert asked == [["elicitation/create"], ["roots/list"], ["elicitation/create"]]
