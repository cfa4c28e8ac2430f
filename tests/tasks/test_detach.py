"""`ctx.detach()`: the start of a tool runs in the request, with questions as round trips; the rest as a stored call."""

import asyncio
from dataclasses import dataclass, field
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_stateless import Context
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from tests.http.door import Answer, JsonObject
from tests.tasks.deployment import (
    FORMS,
    TASKS,
    Deployment,
    LegacyClient,
    accept,
    last_id,
    requests,
    response,
    text_of,
    tool,
)


class Name(BaseModel):
    name: str


@dataclass(slots=True)
class Trip:
    """A tool that asks and pays in the request, detaches, and pays and asks again; what each run of it saw."""

    paid: dict[str, list[str]] = field(default_factory=dict)
    seen: list[tuple[object, ...]] = field(default_factory=list)
    late_question: bool = False

    async def run(self, ctx: Context[None]) -> list[str]:
        """Travel."""
        self.seen.append((ctx.call_id, ctx.started_at, ctx.random.random()))
        early = await ctx.step("early", self._pay("early"))
        answer = await ctx.elicit("Name?", Name, key="name")
        await ctx.detach()
        late = await ctx.step("late", self._pay("late"))
        found = [str(early), answer.data.name if answer.action == "accept" else answer.action, str(late)]
        if self.late_question:
            found.append((await ctx.elicit("Sure?", Name, key="sure")).action)
        return found

    def _pay(self, step: str) -> Any:
        def pay(idempotency_key: str) -> str:
            self.paid.setdefault(step, []).append(idempotency_key)
            return f"paid {step}"

        return pay


DONE = ["paid early", "Ada", "paid late"]


def begin(deployment: Deployment, capabilities: JsonObject) -> Answer:
    """Call the tool, and answer its question."""
    asked = deployment.call(capabilities=capabilities).result
    assert asked["resultType"] == "input_required"
    assert list(asked["inputRequests"]) == ["name"]
    assert deployment.queue.launched == []
    answers = {"name": accept(name="Ada")}
    return deployment.call(capabilities=capabilities, requestState=asked["requestState"], inputResponses=answers)


def check(trip: Trip, steps: int = 2) -> None:
    """Everything that has to be the same in every run was."""
    assert len(set(trip.seen)) == 1
    assert [len(keys) for keys in trip.paid.values()] == [1] * steps
    assert len({key for keys in trip.paid.values() for key in keys}) == steps


@pytest.mark.parametrize("long_running", [False, True, "optional", "task"])
def test_for_who_declares_tasks_the_rest_is_a_task(store: CallStore, long_running: Any) -> None:
    trip = Trip(late_question=True)
    deployment = Deployment(tool(trip.run, long_running=long_running), store)
    created = begin(deployment, TASKS | FORMS).result
    assert created["resultType"] == "task"
    deployment.clock.advance(5)
    deployment.work()
    asked = deployment.get(created["taskId"])
    assert list(asked["inputRequests"]) == ["sure"]
    deployment.answer(created["taskId"], sure=accept(name="x"))
    deployment.work()
    ended = deployment.get(created["taskId"])
    assert ended["result"]["structuredContent"] == [*DONE, "accept"]
    check(trip)


@pytest.mark.parametrize("long_running", [False, True])
def test_for_who_declares_no_tasks_the_rest_comes_in_rounds_that_count_on(store: CallStore, long_running: Any) -> None:
    trip = Trip()
    deployment = Deployment(tool(trip.run, long_running=long_running), store)
    answer = begin(deployment, FORMS).result
    rounds = 2
    while answer["resultType"] == "input_required":
        assert answer["inputRequests"] == {}
        answer = deployment.call(capabilities=FORMS, requestState=answer["requestState"]).result
        rounds += 1
    assert rounds == 10, "the question in place was a round as well"
    deployment.work()
    ticket = text_of(answer).split()[-1]
    ended = deployment.call("check_call", {"ticket": ticket}, capabilities=FORMS).result
    assert ended["structuredContent"] == DONE
    check(trip)


def test_for_a_client_that_polls_the_rest_comes_on_its_stream(store: CallStore) -> None:
    trip = Trip()
    deployment = Deployment(tool(trip.run, long_running=False), store)
    client = LegacyClient(deployment)
    asked = client.call()
    [question] = requests(asked)
    client.respond(question, accept(name="Ada"))
    deployment.work()
    ended = response(client.poll(last_id(asked)))
    assert ended is not None
    assert ended["result"]["structuredContent"] == {"result": DONE}
    check(trip)


async def detaches(ctx: Context[None]) -> int:
    """Go away, if that can be."""
    await ctx.detach()
    await ctx.detach()
    return 1


@pytest.mark.parametrize(
    ("settings", "long_running"), [({"state_rounds": False}, False), ({"state_rounds": False}, True), ({}, "optional")]
)
def test_where_nothing_can_carry_the_rest_it_runs_in_place(settings: JsonObject, long_running: Any) -> None:
    deployment = Deployment(tool(detaches, long_running=long_running), MemoryCallStore(), **settings)
    assert text_of(deployment.call(capabilities={}).result) == "1"
    old = deployment.door.call("tool", version="2025-06-18").result
    assert text_of(old) == "1"
    assert deployment.queue.launched == []


def test_a_tool_may_detach_at_once_and_twice(store: CallStore) -> None:
    deployment = Deployment(tool(detaches, long_running=False), store)
    task_id = deployment.start()
    assert deployment.work() == 1
    assert text_of(deployment.get(task_id)["result"]) == "1"


def test_a_function_in_a_thread_detaches_as_well(store: CallStore) -> None:
    def blocks(ctx: Context[None]) -> str:
        name = ctx.blocking.elicit("Name?", Name, key="name")
        ctx.blocking.detach()
        return str(name.action)

    deployment = Deployment(tool(blocks, long_running=False), store)
    created = begin(deployment, TASKS | FORMS).result
    assert created["resultType"] == "task"
    deployment.work()
    assert text_of(deployment.get(created["taskId"])["result"]) == "accept"


def test_a_tool_may_detach_inside_a_task_group() -> None:
    async def groups(ctx: Context[None]) -> str:
        async with asyncio.TaskGroup() as group:
            group.create_task(ctx.detach())
        return "done"

    deployment = Deployment(tool(groups, long_running=False, detaches=True), MemoryCallStore())
    task_id = deployment.start()
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == "done"


def test_what_fails_before_it_detaches_fails_in_the_request() -> None:
    async def fails(ctx: Context[None]) -> str:
        if ctx.client_capabilities:
            raise ValueError("not now")
        await ctx.detach()
        return "done"

    deployment = Deployment(tool(fails, long_running=False), MemoryCallStore())
    result = deployment.call().result
    assert (result["resultType"], result["isError"]) == ("complete", True)
    assert deployment.queue.launched == []
