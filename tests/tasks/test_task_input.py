"""Questions of tasks (2026-07-28): asked by `tasks/get`, answered by `tasks/update`, one by one or all at once."""

import asyncio

import mcp_types as types
import pytest
from pydantic import BaseModel

from mcp_stateless import Context
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from tests.tasks.deployment import FORMS, TASKS, Deployment, accept, text_of, tool


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


async def asks_two(ctx: Context[None]) -> str:
    name, age = await asyncio.gather(
        ctx.elicit("What is your name?", Name, key="name"), ctx.elicit("How old are you?", Age, key="age")
    )
    return " ".join(
        [
            name.data.name if name.action == "accept" else name.action,
            str(age.data.age) if age.action == "accept" else age.action,
        ]
    )


def test_two_open_questions_are_answered_one_by_one(store: CallStore) -> None:
    deployment = Deployment(tool(asks_two), store)
    task_id = deployment.start()
    deployment.work()
    asked = deployment.get(task_id)
    assert asked["status"] == "input_required"
    assert sorted(asked["inputRequests"]) == ["age", "name"]
    for question in asked["inputRequests"].values():
        assert sorted(question) == ["method", "params"]
        types.ElicitRequest.model_validate(question)
    assert not {"result", "error", "requestState"} & set(asked)
    acknowledged = deployment.answer(task_id, name=accept(name="Ada"))
    assert set(acknowledged) == {"resultType", "_meta"}
    left = deployment.get(task_id)
    assert (left["status"], list(left["inputRequests"])) == ("input_required", ["age"])
    assert deployment.work() == 0, "nobody works before the last answer"
    deployment.answer(task_id, age=accept(age=36))
    assert deployment.get(task_id).get("inputRequests", {}) == {}
    assert deployment.work() == 1
    assert text_of(deployment.get(task_id)["result"]) == "Ada 36"
    assert len(deployment.queue.launched) == 2


def test_both_questions_can_be_answered_at_once_and_keys_nobody_knows_are_ignored(store: CallStore) -> None:
    deployment = Deployment(tool(asks_two), store)
    task_id = deployment.start()
    deployment.work()
    deployment.answer(task_id, other={"action": "cancel"}, name={"action": "decline"}, age={"action": "cancel"})
    deployment.answer(task_id, name=accept(name="too late"))
    deployment.work()
    ended = deployment.get(task_id)
    assert text_of(ended["result"]) == "decline cancel"
    deployment.answer(task_id, name=accept(name="far too late"))
    assert deployment.get(task_id) == ended
    assert deployment.work() == 0


def test_answers_without_a_question_are_acknowledged_and_forgotten(store: CallStore) -> None:
    deployment = Deployment(tool(asks_two), store)
    task_id = deployment.start()
    assert deployment.answer(task_id, name=accept(name="too early"))["resultType"] == "complete"
    assert deployment.answer(task_id)["resultType"] == "complete"
    deployment.work()
    assert sorted(deployment.get(task_id)["inputRequests"]) == ["age", "name"]


def test_an_answer_that_does_not_fit_is_asked_for_again_under_a_new_key(store: CallStore) -> None:
    deployment = Deployment(tool(asks_two), store)
    task_id = deployment.start()
    deployment.work()
    deployment.answer(task_id, name=accept(name="Ada"), age=accept(age="old"))
    seen = {"name", "age"}
    for _ in range(3):
        deployment.work()
        [key] = deployment.get(task_id)["inputRequests"]
        assert key not in seen
        seen.add(key)
        deployment.answer(task_id, name=accept(name="Eve"), age=accept(age=1), **{key: accept(age="older")})
    deployment.work()
    [key] = deployment.get(task_id)["inputRequests"]
    deployment.answer(task_id, **{key: accept(age=36)})
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == "Ada 36"


def test_a_new_key_is_none_that_the_author_uses_for_another_question(store: CallStore) -> None:
    async def asks(ctx: Context[None]) -> str:
        other = await ctx.elicit("Other?", Name, key="name~3")
        name = await ctx.elicit("Name?", Name, key="name")
        return f"{other.action} {name.action}"

    deployment = Deployment(tool(asks), store)
    task_id = deployment.start()
    deployment.work()
    deployment.answer(task_id, **{"name~3": accept(name="other")})
    deployment.work()
    deployment.answer(task_id, name=accept())
    deployment.work()
    [key] = deployment.get(task_id)["inputRequests"]
    assert key not in ("name", "name~3")
    deployment.answer(task_id, **{key: accept(name="Ada")})
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == "accept accept"


def test_a_question_can_only_be_put_to_a_client_that_declared_it(store: CallStore) -> None:
    async def asks(ctx: Context[None]) -> str:
        return (await ctx.elicit("Name?", Name)).action

    deployment = Deployment(tool(asks), store)
    created = deployment.call(capabilities=TASKS).result
    deployment.work()
    ended = deployment.get(created["taskId"])
    assert (ended["status"], ended["error"]["code"]) == ("failed", -32021)
    assert ended["error"]["data"] == {"requiredCapabilities": FORMS}


@pytest.mark.parametrize("answers", [None, [], "x", {"name": "Ada"}, {"name": None}, {"name": []}])
def test_answers_of_another_shape_are_invalid_params(answers: object) -> None:
    deployment = Deployment(tool(asks_two), MemoryCallStore())
    task_id = deployment.start()
    assert deployment.task("update", task_id, inputResponses=answers).error["code"] == -32602


def test_a_question_that_nobody_answers_expires_with_the_task(store: CallStore) -> None:
    deployment = Deployment(tool(asks_two), store, call_ttl_s=600)
    task_id = deployment.start()
    deployment.work()
    deployment.clock.advance(599)
    assert deployment.get(task_id)["status"] == "input_required"
    deployment.clock.advance(1)
    assert deployment.task("get", task_id).error["code"] == -32602
    assert deployment.task("update", task_id, inputResponses={"name": accept(name="x")}).error["code"] == -32602
    assert deployment.work() == 0


def test_a_task_may_ask_after_it_was_launched_in_vain(store: CallStore) -> None:
    """The launch after the last answer is lost; who looks 30 s later does it again."""
    deployment = Deployment(tool(asks_two), store)
    task_id = deployment.start()
    deployment.work()
    deployment.queue.loses = True
    deployment.answer(task_id, name=accept(name="Ada"), age=accept(age=36))
    deployment.queue.loses = False
    deployment.clock.advance(31)
    deployment.get(task_id)
    assert deployment.work() == 1
    assert text_of(deployment.get(task_id)["result"]) == "Ada 36"


def test_a_question_that_is_another_one_in_each_run_ends_the_task_readably(store: CallStore) -> None:
    times = iter(range(100))

    async def asks(ctx: Context[None]) -> str:
        return (await ctx.elicit(f"It is {next(times)} o'clock. Name?", Name)).action

    deployment = Deployment(tool(asks), store)
    task_id = deployment.start()
    for _ in range(5):
        deployment.work()
        task = deployment.get(task_id)
        deployment.answer(task_id, **{key: accept(name="Ada") for key in task.get("inputRequests", {})})
    assert task["result"]["isError"]
    assert "give the question a key" in text_of(task["result"])


@pytest.mark.parametrize(("version", "told"), [("1", "took another way"), ("2", "start the call again")])
def test_a_deploy_while_a_question_is_open_is_named_if_the_new_tool_takes_another_way(
    store: CallStore, version: str, told: str
) -> None:
    async def asks(ctx: Context[None]) -> str:
        return (await ctx.elicit("Name?", Name, key="name")).action

    async def asks_no_more() -> str:
        return "done"

    deployment = Deployment(tool(asks), store)
    task_id = deployment.start()
    deployment.work()
    deployment.deploy(tool(asks_no_more), version)
    deployment.answer(task_id, name=accept(name="Ada"))
    deployment.work()
    result = deployment.get(task_id)["result"]
    assert result["isError"]
    assert told in text_of(result)


def test_a_deploy_that_keeps_the_way_of_a_tool_lets_its_open_calls_go_on(store: CallStore) -> None:
    async def asks(ctx: Context[None]) -> str:
        return (await ctx.elicit("Name?", Name, key="name")).action

    deployment = Deployment(tool(asks), store)
    task_id = deployment.start()
    deployment.work()
    deployment.deploy(tool(asks, timeout_seconds=60), "2")
    deployment.answer(task_id, name=accept(name="Ada"))
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == "accept"


def test_a_tool_that_is_not_offered_any_more_is_named(store: CallStore) -> None:
    async def done() -> str:
        return "done"

    deployment = Deployment(tool(done), store)
    task_id = deployment.start()
    deployment.deploy(lambda server: server.tool("other", description="Work.", long_running=True)(done))
    deployment.work()
    result = deployment.get(task_id)["result"]
    assert (result["isError"], text_of(result)) == (True, "This tool is not offered any more")


def test_an_answer_counts_even_if_nobody_can_be_launched_for_it_at_once(store: CallStore) -> None:
    deployment = Deployment(tool(asks_two), store)
    task_id = deployment.start()
    deployment.work()
    deployment.queue.fails = True
    deployment.answer(task_id, name=accept(name="Ada"), age=accept(age=36))
    deployment.queue.fails = False
    deployment.clock.advance(31)
    deployment.get(task_id)
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == "Ada 36"
