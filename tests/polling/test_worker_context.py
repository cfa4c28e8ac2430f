"""What a tool sees in a worker: its caller and its call, and nothing of the request that brought it."""

from typing import Any

from mcp_stateless import Context
from mcp_stateless.calls.desk import Caller
from mcp_stateless.journal import Records
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.revisions import REVISIONS
from tests.polling.world import POLLER, World, ran

SENT = {
    "authorization": "Bearer secret",
    "cookie": "session=secret",
    "x-api-key": "secret",
    "x-forwarded-for": "192.0.2.7",
    "user-agent": "agent/1",
    "accept-language": "de",
    "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
}


def test_a_worker_sees_headers_of_a_short_list_and_no_event(world: World) -> None:
    seen: dict[str, Any] = {}

    async def looking(ctx: Context[None]) -> None:
        seen.update(
            headers=dict(ctx.headers),
            event=ctx.lambda_event,
            remaining=ctx.remaining_time_ms,
            context=ctx.lambda_context,
            request_id=ctx.request_id,
            version=ctx.protocol_version,
        )

    world.tool(looking, timeout_seconds=800)
    world.start(request_id="r", headers={**SENT, "accept": "application/json, text/event-stream"})
    world.work(context_ms=60_000)
    assert seen["headers"] == {
        "user-agent": "agent/1",
        "accept-language": "de",
        "traceparent": SENT["traceparent"],
        "mcp-protocol-version": POLLER,
    }
    assert seen["event"] is None
    assert (seen["request_id"], seen["version"]) == ("r", POLLER)
    # Until the worker is stopped, which is some seconds before Lambda would.
    assert 50_000 < seen["remaining"] <= 55_000
    assert seen["context"].get_remaining_time_in_millis() > 55_000


def test_nothing_secret_lies_in_the_record(world: World) -> None:
    async def quick() -> None: ...

    world.tool(quick)
    world.start(headers=dict(SENT))
    assert "secret" not in repr(world.read(world.queue.take()))


def test_the_caller_is_who_it_was_in_the_request(world: World) -> None:
    seen: list[Principal] = []

    async def looking(ctx: Context[None]) -> None:
        seen.append(ctx.principal)

    world.tool(looking)
    ada = Principal("https://issuer.example", "Ada", "client", frozenset({"read"}), {"level": 1})
    call = Call(1, "tools/call", {"name": "long"}, REVISIONS[POLLER])
    records = Records(call_id="journal", started_at=world.clock())
    ran(world.desk.accept(call, world.server.registry.tools["long"], {}, "polled", Caller(ada), records))
    world.work()
    [found] = seen
    assert found == ada
    assert (found.client_id, found.scopes, found.claims) == ("client", frozenset({"read"}), {"level": 1})


def test_the_id_and_the_start_of_a_call_are_those_of_the_request_in_every_attempt(world: World) -> None:
    seen: list[tuple[str, float, float]] = []

    async def looking(ctx: Context[None]) -> None:
        seen.append((ctx.call_id, ctx.started_at.timestamp(), ctx.random.random()))
        if len(seen) < 3:
            world.store.before = died

    def died(asked: str) -> None:
        raise SystemExit

    world.tool(looking, retries=2)
    start = world.clock.now
    last_id = world.start().last_id
    for _ in range(3):
        world.clock.advance(1)
        world.work()
        world.store.before = lambda asked: None
        world.clock.advance(131)
        last_id = (polled := world.poll(last_id)).last_id
    assert len(seen) == 3
    assert len(set(seen)) == 1
    assert seen[0][1] == start
    assert polled.response is not None
