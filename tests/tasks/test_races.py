"""Races for one call on a DynamoDB engine: whoever moves it at the same time, one wins and all see the same end.

Each race is run many times at once, every store request in a thread of its own. `MCP_RACES` says how many times: 1000
is the number for a soak.
"""

import asyncio
import os
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any, Final
from uuid import uuid4

from mcp_stateless.calls import polled, tasks
from mcp_stateless.calls.desk import CallDesk, outcome
from mcp_stateless.calls.dynamodb import DynamoDBCallStore
from mcp_stateless.calls.record import CallRecord, Claim, Finish, MoveRefused, Park, State, StoredRequest
from mcp_stateless.errors import InvalidParams
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol.inbound import Call
from mcp_stateless.protocol.revisions import REVISIONS, Wire
from mcp_stateless.protocol.sealing import seal
from mcp_stateless.settings import Settings
from tests.tasks.deployment import RING, START, TASKS, Clock, Queue, accept

TIMES: Final = int(os.environ.get("MCP_RACES", "60"))
AT_ONCE: Final = 12
"""Races at the same time: enough threads for each of their requests."""
MALLORY: Final = Principal("https://issuer.example", "Mallory")
DONE: Final = '{"result":{"content":[],"isError":false}}'
NOW_MS: Final = int(START * 1000)


@dataclass(slots=True)
class Race:
    """One call that is asking `a` and `b`, with a queue and a clock of its own."""

    desk: CallDesk
    queue: Queue
    clock: Clock
    call_id: str
    chance: random.Random

    async def together(self, *moves: Awaitable[object]) -> list[object]:
        """Start everything in any order, at the same time; what came of each is told in the order given."""
        order = list(range(len(moves)))
        self.chance.shuffle(order)
        ends = await asyncio.gather(*(_settled(moves[index]) for index in order))
        return [end for _, end in sorted(zip(order, ends, strict=True), key=lambda pair: pair[0])]

    async def answer(self, key: str, name: str) -> None:
        await self.desk.answer(self.call_id, key, {"result": accept(name=name)})

    async def record(self) -> CallRecord:
        snapshot = await self.desk.store.read(self.call_id, 0, self.desk.now_ms())
        assert snapshot is not None
        return snapshot.record

    async def claim(self) -> CallRecord:
        return await self.desk.store.apply(self.call_id, Claim(), self.desk.now_ms())

    async def finish(self, attempt: int) -> CallRecord:
        return await self.desk.store.apply(self.call_id, Finish(attempt, State.COMPLETED, DONE), self.desk.now_ms())

    def task_id(self, caller: Principal = ANONYMOUS) -> str:
        expires_at = NOW_MS // 1000 + 600
        return seal(RING, tasks.PURPOSE, self.call_id.encode(), bound_to=(caller.key,), expires_at=expires_at)

    async def update(self, task_id: str, caller: Principal = ANONYMOUS, **answers: str) -> Wire:
        responses = {key: accept(name=name) for key, name in answers.items()}
        params: Wire = {"taskId": task_id, "inputResponses": responses}
        return await tasks.update(self.desk, self._call("tasks/update", params), caller)

    async def get(self) -> Wire:
        return await tasks.get(self.desk, self._call("tasks/get", {"taskId": self.task_id()}), ANONYMOUS)

    def _call(self, method: str, params: Wire) -> Call:
        return Call(1, method, params, REVISIONS["2026-07-28"], client_capabilities=TASKS)


async def _settled(move: Awaitable[object]) -> object:
    await asyncio.sleep(0)
    try:
        return await move
    except (MoveRefused, InvalidParams) as refused:
        return refused


def run(dynamodb: DynamoDBCallStore, race: Callable[[Race], Awaitable[None]], *, asking: bool = True) -> None:
    """Run the race `TIMES` times, some of them at once."""
    settings = Settings.model_validate({"call_ttl_s": 600})

    async def once(number: int, places: asyncio.Semaphore) -> None:
        async with places:
            clock, queue = Clock(), Queue()
            desk = CallDesk(dynamodb, queue, RING, settings, clock, lambda: uuid4().hex)
            racing = Race(desk, queue, clock, uuid4().hex, random.Random(number))
            await dynamodb.create(replace(_PENDING, call_id=racing.call_id))
            if asking:
                questions = {"a": _question("a", 1), "b": _question("b", 2)}
                await racing.claim()
                await dynamodb.apply(racing.call_id, Park(1, questions), NOW_MS)
            await race(racing)

    async def all_of_them() -> None:
        places = asyncio.Semaphore(AT_ONCE)
        await asyncio.gather(*(once(number, places) for number in range(TIMES)))

    asyncio.run(all_of_them())


_PENDING: Final = CallRecord(
    call_id="",
    request=StoredRequest("tool", 1, "2026-07-28", "task", ANONYMOUS, 120, client_capabilities={"elicitation": {}}),
    arguments="{}",
    created_ms=NOW_MS,
    due_ms=NOW_MS + 30_000,
    until_ms=NOW_MS + 600_000,
)


def _question(name: str, number: int) -> Wire:
    params = {"mode": "form", "message": name, "requestedSchema": {"type": "object", "properties": {}}}
    return {"method": "elicitation/create", "params": params, "name": name, "number": number}


def _name(record: CallRecord, key: str) -> str:
    answer: Any = record.answers[key]
    found: str = answer["result"]["content"]["name"]
    return found


def is_refused(end: object) -> bool:
    return isinstance(end, MoveRefused)


def test_of_two_answers_to_a_question_one_is_recorded(dynamodb: DynamoDBCallStore) -> None:
    firsts = set()

    async def race(call: Race) -> None:
        await call.together(call.answer("a", "Ada"), call.answer("a", "Eve"))
        record = await call.record()
        assert (record.state, record.open, set(record.answers)) == (State.ASKING, 1, {"a"})
        assert call.queue.launched == []
        firsts.add(_name(record, "a"))
        await call.answer("a", "late")
        assert (await call.record()).answers == record.answers

    run(dynamodb, race)
    assert firsts == {"Ada", "Eve"}, "both of them win now and then"


def test_whoever_answers_the_last_question_launches_and_nobody_else(dynamodb: DynamoDBCallStore) -> None:
    async def race(call: Race) -> None:
        moves = [call.answer(key, name) for key in ("a", "b") for name in ("Ada", "Eve", "Joe")]
        await call.together(*moves)
        record = await call.record()
        assert (record.open, set(record.answers)) == (0, {"a", "b"})
        assert call.queue.launched == [call.call_id]
        claims = await call.together(call.claim(), call.claim(), call.claim())
        assert [is_refused(end) for end in claims].count(False) == 1

    run(dynamodb, race)


def test_an_answer_against_the_end_changes_nothing_about_the_end(dynamodb: DynamoDBCallStore) -> None:
    async def race(call: Race) -> None:
        await call.answer("b", "Bea")
        await call.together(call.answer("a", "Ada"), call.desk.cancel(call.call_id))
        record = await call.record()
        assert record.state is State.CANCELLED
        was_first = "a" in record.answers
        assert len(call.queue.launched) == was_first
        assert is_refused((await call.together(call.claim()))[0])
        await call.answer("a", "late")
        assert await call.record() == record

    run(dynamodb, race)


def test_an_answer_of_another_caller_never_wins(dynamodb: DynamoDBCallStore) -> None:
    async def race(call: Race) -> None:
        mine, stolen = call.task_id(), call.task_id(MALLORY)
        ends = await call.together(
            call.update(mine, a="Ada", b="Bea"),
            call.update(mine, MALLORY, a="Mallory", b="Mallory"),
            call.update(stolen, a="Mallory", b="Mallory"),
        )
        assert [isinstance(end, InvalidParams) for end in ends] == [False, True, True]
        record = await call.record()
        assert (_name(record, "a"), _name(record, "b")) == ("Ada", "Bea")
        assert call.queue.launched == [call.call_id]

    run(dynamodb, race)


def test_an_answer_to_a_forged_id_never_wins(dynamodb: DynamoDBCallStore) -> None:
    async def race(call: Race) -> None:
        body = f'["{call.call_id}", "a"]'.encode()
        expires_at = NOW_MS // 1000 + 600
        real = seal(RING, polled.ANSWER_PURPOSE, body, bound_to=(ANONYMOUS.key,), expires_at=expires_at)
        stolen = seal(RING, polled.ANSWER_PURPOSE, body, bound_to=(MALLORY.key,), expires_at=expires_at)
        place = call.chance.randrange(len(real) - 1)
        forged = real[:place] + ("A" if real[place] != "A" else "B") + real[place + 1 :]

        def take(rpc_id: str, name: str, caller: Principal = ANONYMOUS) -> Awaitable[None]:
            return polled.take_answer(call.desk, rpc_id, {"result": accept(name=name)}, caller)

        forgeries = [take(forged, "Mallory"), take(stolen, "Mallory"), take(real, "Mallory", MALLORY)]
        await call.together(take(real, "Ada"), *forgeries)
        assert _name(await call.record(), "a") == "Ada"

    run(dynamodb, race)


def test_of_a_cancel_and_a_result_one_wins_and_stays(dynamodb: DynamoDBCallStore) -> None:
    ends = set()

    async def race(call: Race) -> None:
        attempt = (await call.claim()).attempt
        finished, _ = await call.together(call.finish(attempt), call.desk.cancel(call.call_id))
        record = await call.record()
        assert record.state is (State.CANCELLED if is_refused(finished) else State.COMPLETED)
        assert (record.outcome == DONE) == (record.state is State.COMPLETED)
        assert (record.outcome == outcome("The call was cancelled.")) == (record.state is State.CANCELLED)
        await call.together(call.desk.cancel(call.call_id), call.finish(attempt), call.desk.lost(call.call_id))
        assert await call.record() == record
        assert (await call.get())["status"] == record.state.value
        ends.add(record.state)

    run(dynamodb, race, asking=False)
    assert ends == {State.CANCELLED, State.COMPLETED}, "both of them win now and then"


def test_an_update_against_the_expiry_is_recorded_or_unknown_and_nothing_works_after_it(
    dynamodb: DynamoDBCallStore,
) -> None:
    async def race(call: Race) -> None:
        call.clock.now = START + 599.999

        async def expire() -> None:
            for _ in range(call.chance.randrange(4)):
                await asyncio.sleep(0)
            call.clock.advance(0.001)

        update, _ = await call.together(call.update(call.task_id(), a="Ada", b="Bea"), expire())
        assert isinstance(update, InvalidParams) or update == {}
        assert len(call.queue.launched) <= 1
        assert await call.desk.store.read(call.call_id, 0, call.desk.now_ms()) is None
        late = await call.together(call.claim(), call.get(), call.update(call.task_id(), a="Eve"))
        assert is_refused(late[0])
        assert all(isinstance(end, InvalidParams) for end in late[1:])
        assert len(call.queue.launched) <= 1

    run(dynamodb, race)


def test_of_a_lost_worker_and_its_follower_only_one_can_write(dynamodb: DynamoDBCallStore) -> None:
    async def race(call: Race) -> None:
        first = await call.claim()
        call.clock.advance(131)
        await call.together(*(call.desk.read(call.call_id) for _ in range(3)))
        record = await call.record()
        assert record.state is State.FAILED
        assert is_refused((await call.together(call.finish(first.attempt)))[0])
        assert call.queue.launched == []

    run(dynamodb, race, asking=False)
