"""One long call, driven through the real handlers in every order that Lambda, clients and time may bring about."""

from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from mcp_stateless import Context
from mcp_stateless.calls.launch import WORK_KEY
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import StoreUnavailable
from mcp_stateless.testing import lambda_context
from tests.http.door import initialize as handshake
from tests.http.door import request
from tests.polling.streams import Stream, stream
from tests.polling.world import World

RETRIES = 2


class ProcessDied(BaseException):
    """The worker's process ends here."""


class OneCall(RuleBasedStateMachine):
    """Beside the call that is watched runs another one, of another client, with the same ids."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World(MemoryCallStore(), client_token="always", log_messages="info")
        self.world.tool(self.tool, retries=RETRIES, structured_output=False, timeout_seconds=60)
        self.effects: list[str] = []
        self.launched: list[str] = []
        self.ids: dict[str, tuple[float, int]] = {}
        """Each id that came: how much progress and how many messages the client had seen with it."""
        self.final: dict[str, bytes] = {}
        self.outcomes: set[str] = set()
        self.final_ids: set[str] = set()

    async def tool(self, mine: bool, ctx: Context[None]) -> str:
        def effect(idempotency_key: str) -> str:
            if mine:
                self.effects.append(idempotency_key)
            return "kept"

        await ctx.report_progress(1, 3)
        kept = await ctx.step("effect", effect)
        await ctx.info("mine" if mine else "theirs")
        return f"{kept} {'mine' if mine else 'theirs'}"

    @initialize()
    def start(self) -> None:
        world = self.world
        answer = world.door.post(request("initialize", handshake("2025-11-25")))
        self.headers: dict[str, str | None] = {"mcp-session-id": answer.headers["mcp-session-id"]}
        begun = world.start({"mine": True}, request_id=1, token=1, headers=self.headers)
        [self.call_id] = world.queue.call_ids
        self.ids[begun.last_id] = (-1.0, 0)
        self.other = world.start({"mine": False}, request_id=1, token=1)
        self.created = world.clock.now

    def collect(self) -> None:
        self.launched += self.world.queue.call_ids
        self.world.queue.call_ids.clear()

    @rule(data=st.data())
    def poll(self, data: st.DataObject) -> None:
        last_id = data.draw(st.sampled_from(list(self.ids)))
        answer = self.world.get(last_id)
        if last_id in self.final_ids:
            assert answer.status == 405
            return
        self.seen(last_id, stream(answer), answer.body)

    def seen(self, last_id: str, polled: Stream, body: bytes) -> None:
        progress, messages = self.ids[last_id]
        assert "theirs" not in body.decode()
        if polled.response is not None:
            assert polled.response["id"] == 1
            if not self.is_expired:
                assert self.final.setdefault(last_id, body) == body
                self.outcomes.add(polled.text)
            self.final_ids.add(polled.last_id)
            self.ids[polled.last_id] = (progress, messages)
            return
        assert not self.outcomes, "a call that had ended runs again"
        assert polled.progress > progress
        assert polled.retry is not None
        assert polled.last_id not in self.ids or self.ids[polled.last_id][0] <= polled.progress
        self.ids[polled.last_id] = (polled.progress, messages + len(polled.logs))

    @property
    def is_expired(self) -> bool:
        return self.world.clock.now - self.created >= self.world.settings.call_ttl_s

    @rule(again=st.booleans(), data=st.data())
    def deliver(self, again: bool, data: st.DataObject) -> None:
        """The next event, or one that was delivered before, however long ago."""
        self.collect()
        if self.launched:
            index = data.draw(st.integers(0, len(self.launched) - 1)) if again else -1
            self.world.work(self.launched[index])

    @rule(moment=st.sampled_from(["Claim", "RecordStep", "append", "Finish"]))
    def crash(self, moment: str) -> None:
        """A worker dies before a write; nothing that it would do then gets through."""
        asked_before: list[str] = []

        def dies(asked: str) -> None:
            asked_before.append(asked)
            if moment in asked_before:
                raise ProcessDied

        self.world.store.before = dies
        self.world.work(self.call_id)
        self.world.store.before = lambda asked: None

    @rule(moment=st.sampled_from(["RecordStep", "append", "Finish"]))
    def overtake(self, moment: str) -> None:
        """A worker is so slow before a write that it is given up, and another one is done when it goes on."""

        def another_one_works(asked: str) -> None:
            if asked == moment:
                self.world.store.before = lambda asked: None
                self.world.clock.advance(75)
                self.seen(self.newest, *self.answer(self.newest))
                self.world.handler()({WORK_KEY: self.call_id}, lambda_context(900_000))

        self.world.store.before = another_one_works
        self.world.work(self.call_id)
        self.world.store.before = lambda asked: None

    @property
    def live_ids(self) -> list[str]:
        """Those that may be polled with, in the order in which they came: an order of their texts would be random."""
        return [last_id for last_id in self.ids if last_id not in self.final_ids]

    @property
    def newest(self) -> str:
        """The id with which the client has seen most, and that is not its last."""
        return max(self.live_ids, key=lambda last_id: self.ids[last_id])

    def answer(self, last_id: str) -> tuple[Stream, bytes]:
        answer = self.world.get(last_id)
        return stream(answer), answer.body

    @rule(moment=st.sampled_from(["read", "Relaunch", "Fail"]), data=st.data())
    def poll_in_an_outage(self, moment: str, data: st.DataObject) -> None:
        def fails(asked: str) -> None:
            if asked == moment:
                raise StoreUnavailable("throttled")

        last_id = data.draw(st.sampled_from(self.live_ids))
        self.world.store.before = fails
        answer = self.world.get(last_id)
        self.world.store.before = lambda asked: None
        polled = stream(answer)
        if polled.response is None and polled.messages == []:
            self.ids[polled.last_id] = self.ids[last_id]
        else:
            self.seen(last_id, polled, answer.body)

    @rule()
    def report_a_failure(self) -> None:
        self.world.report_failure(self.call_id)

    @rule()
    def report_a_dropped_event(self) -> None:
        self.world.report_failure(self.call_id, "EventAgeExceeded")

    @rule(theirs=st.booleans())
    def cancel(self, theirs: bool) -> None:
        message = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        headers: dict[str, Any] = {} if theirs else self.headers
        assert self.world.door.post(message, {"mcp-protocol-version": "2025-11-25", **headers}).status == 202

    @rule(seconds=st.sampled_from([0.5, 5, 31, 75]))
    def wait(self, seconds: float) -> None:
        self.world.clock.advance(seconds)

    @precondition(lambda self: not self.is_expired)
    @rule()
    def expire(self) -> None:
        self.world.clock.advance(self.world.settings.call_ttl_s)

    @invariant()
    def it_ends_once(self) -> None:
        assert len(self.outcomes) <= 1
        assert len(self.effects) <= RETRIES + 1
        assert len(set(self.effects)) <= 1

    def teardown(self) -> None:
        """Whatever happened: a client that goes on polling gets an answer, and the other client its own."""
        mine = self.carried_on(self.live_ids[0])
        if not self.is_expired:
            assert self.outcomes <= {mine.text}
            assert mine.text in ("kept mine", LOST, "The call was cancelled.")
            assert self.carried_on(self.other.last_id).text == "kept theirs"

    def carried_on(self, last_id: str) -> Stream:
        for _ in range(3 * (RETRIES + 2)):
            polled = self.world.poll(last_id)
            if polled.response is not None:
                return polled
            self.collect()
            for call_id in self.launched:
                self.world.work(call_id)
            self.world.clock.advance(75)
            last_id = polled.last_id
        raise AssertionError("the call does not end")


LOST = "The call was lost: its worker ended without a result. Call the tool again."

TestOneCall = OneCall.TestCase
TestOneCall.settings = settings(
    max_examples=60,
    stateful_step_count=25,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
