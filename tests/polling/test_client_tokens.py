"""The client token: who gets one, that nobody needs it, and that it cancels a call and finds one again."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from mcp_stateless import Context
from mcp_stateless.calls.client_token import ClientToken
from mcp_stateless.principal import Principal
from tests.http.door import initialize, request
from tests.polling.world import SECONDS, World

HEADER = "mcp-session-id"
CANCELLED = "The call was cancelled."


async def quick(n: int = 1) -> int:
    return n


async def asks(ctx: Context[None]) -> str:
    return (await ctx.elicit("Well?", {"type": "object", "properties": {}})).action


def token_of(world: World, version: str = "2025-11-25") -> str | None:
    answer = world.door.post(request("initialize", initialize(version)))
    assert answer.result["protocolVersion"] == version
    return answer.headers.get(HEADER)


@pytest.fixture
def known(deploy: Callable[..., World]) -> tuple[World, dict[str, str | None]]:
    """A deployment, and the header of a client that it gave a token."""
    world = deploy(client_token="always")
    world.tool(quick)
    return world, {HEADER: token_of(world)}


def cancel(world: World, request_id: Any, headers: Mapping[str, str | None]) -> None:
    message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": request_id}}
    answer = world.door.post(message, {"mcp-protocol-version": "2025-11-25", **headers})
    assert (answer.status, answer.body) == (202, b"")


@pytest.mark.parametrize(
    ("setting", "tool", "given"),
    [("auto", quick, False), ("auto", asks, True), ("always", quick, True), ("never", asks, False)],
)
def test_a_token_is_given_where_a_tool_asks_or_a_setting_says_so(
    deploy: Callable[..., World], setting: str, tool: Callable[..., Any], given: bool
) -> None:
    world = deploy(client_token=setting)
    world.tool(tool)
    assert (token_of(world) is not None) == given
    assert world.store.asked == []


@pytest.mark.parametrize("version", ["2024-11-05", "2025-03-26", "2025-06-18"])
def test_older_revisions_get_no_token(deploy: Callable[..., World], version: str) -> None:
    world = deploy(client_token="always")
    world.tool(quick)
    assert token_of(world, version) is None


def test_every_handshake_gives_another_token(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    assert token_of(world) != headers[HEADER]


@pytest.mark.parametrize("token", ["", "garbage", "x" * 3000, "\xff"])
def test_a_token_that_is_none_is_served_all_the_same(known: tuple[World, dict[str, str | None]], token: str) -> None:
    world, _ = known
    assert world.start(headers={HEADER: token}).retry == 1000
    assert world.door.legacy("tools/list", headers={HEADER: token}).status == 200


def test_an_expired_or_foreign_token_is_served_all_the_same(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    foreign = ClientToken("n", {}).sealed(world.keys, Principal("i", "Bob"), int(world.clock()) + 60)
    both: list[dict[str, str | None]] = [headers, {HEADER: foreign}]
    for held in both:
        world.clock.advance(31 * 24 * 3600)
        begun = world.start(request_id=1, headers=held)
        cancel(world, 1, held)
        world.work()
        assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


def test_nobody_has_a_session_to_end(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    token = headers[HEADER]
    assert token is not None
    assert world.door.send("DELETE", headers={HEADER: token}).status == 405
    assert world.start(headers=headers).retry == 1000


def test_a_client_cancels_its_call(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    begun = world.start(request_id="mine", headers=headers)
    cancel(world, "mine", headers)
    ended = world.poll(begun.last_id)
    assert ended.result == {"content": [{"type": "text", "text": CANCELLED}], "isError": True}
    world.work()
    assert world.poll(begun.last_id).text == CANCELLED


# Cooperative: the worker sees it with its next write.
def test_a_running_tool_is_stopped_when_its_call_is_cancelled(deploy: Callable[..., World]) -> None:
    world = deploy(client_token="always", flush_interval_ms=1)
    headers, stopped = {HEADER: token_of(world)}, []

    async def slow(ctx: Context[None]) -> None:
        await asyncio.to_thread(cancel, world, 1, headers)
        await ctx.report_progress(1)
        try:
            await asyncio.sleep(SECONDS)
        except asyncio.CancelledError:
            stopped.append(True)
            raise

    world.tool(slow)
    begun = world.start(request_id=1, headers=headers)
    world.work()
    assert stopped == [True]
    assert "Finish" not in world.store.asked
    assert world.poll(begun.last_id).text == CANCELLED


def test_a_cancellation_by_anybody_else_is_ignored(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    begun = world.start(request_id=1, headers=headers)
    world.store.asked.clear()
    for other in ({}, {HEADER: "garbage"}):
        cancel(world, 1, other)
    assert world.store.asked == []
    cancel(world, 1, {HEADER: token_of(world)})
    for wrong in (2, "1", None, True, 1.5, [1]):
        cancel(world, wrong, headers)
    world.work()
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


def test_a_cancellation_that_comes_late_changes_nothing(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    begun = world.start(request_id=1, headers=headers)
    world.work()
    cancel(world, 1, headers)
    assert world.poll(begun.last_id).result["structuredContent"] == {"result": 1}


# B132 and CALLS.md
@pytest.mark.parametrize("padding", [0, 5_000], ids=["small", "beside the record"])
def test_a_request_posted_again_finds_its_call(known: tuple[World, dict[str, str | None]], padding: int) -> None:
    world, headers = known

    async def echo(n: int, text: str) -> int:
        return n

    world.tool(echo, "echo")
    first = {"n": 1, "text": "x" * padding}
    begun = [world.start(first, name="echo", request_id=7, headers=headers) for _ in range(2)]
    other = world.start({**first, "n": 2}, name="echo", request_id=7, headers=headers)
    assert len(world.queue.call_ids) == 2
    world.work()
    world.work()
    assert [world.poll(each.last_id).result["structuredContent"] for each in (*begun, other)] == [
        {"result": 1},
        {"result": 1},
        {"result": 2},
    ]
    # What has ended is not what somebody calls for anew.
    again = world.start(first, name="echo", request_id=7, headers=headers)
    assert len(world.queue.call_ids) == 1
    assert world.poll(again.last_id).response is None


def test_clients_without_a_token_never_find_each_others_calls(known: tuple[World, dict[str, str | None]]) -> None:
    world, headers = known
    streams = [world.start(request_id=1, headers=each) for each in (headers, {}, {}, {HEADER: token_of(world)})]
    assert len(world.queue.call_ids) == 4
    assert len({each.last_id for each in streams}) == 4
