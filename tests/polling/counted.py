"""A tool that counts its runs, and what becomes of its calls."""

from typing import Any

from mcp_stateless.calls.record import Claim
from tests.polling.streams import Stream
from tests.polling.world import World

LOST = "The call was lost: its worker ended without a result. Call the tool again."


OUTCOME = '{"result":{"content":[{"type":"text","text":"late"}],"isError":false}}'


class Counted:
    """A tool that counts its runs."""

    def __init__(self) -> None:
        self.runs = 0

    async def __call__(self) -> int:
        self.runs += 1
        return self.runs

    def offered_by(self, world: World, **options: Any) -> "Counted":
        async def counted() -> int:
            return await self()

        world.tool(counted, **options)
        return self


def claimed(world: World) -> str:
    """A call whose worker has claimed it and will never be heard of again."""
    call_id = world.queue.take()
    world.write(world.store.apply(call_id, Claim(), world.now_ms()))
    return call_id


def assert_failed(ended: Stream, text: str) -> None:
    assert ended.result == {"content": [{"type": "text", "text": text}], "isError": True}
