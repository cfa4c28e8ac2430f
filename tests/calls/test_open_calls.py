"""The cap of open long calls: who is counted, on which wire, when a place is free again, and what it costs."""

from collections.abc import Callable
from typing import Any, Final
from uuid import uuid4

import pytest
from pydantic import BaseModel

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.record import LATE_MS, Claim
from mcp_stateless.calls.store import RecordTooLarge, StoreUnavailable
from mcp_stateless.errors import ConfigurationError
from tests.http.door import Answer, Door, JsonObject
from tests.polling.world import WatchedStore, ran
from tests.tasks.deployment import FORMS, Deployment, LegacyClient, accept, last_id, response, text_of

TIMEOUT_S: Final = 60
LAUNCH_S: Final = 30
OPEN_S: Final = LAUNCH_S + TIMEOUT_S + LATE_MS / 1000
"""How long a call of the tool holds its place if nobody hears of it any more."""
NOT_STARTED: Final = "The call could not be started. Try again in a moment."


class Word(BaseModel):
    word: str


def offer(server: MCPServer) -> None:
    @server.tool(long_running=True, timeout_seconds=TIMEOUT_S, structured_output=False)
    async def long(text: str = "done") -> str:
        """Take long."""
        return text

    @server.tool(long_running=True, timeout_seconds=TIMEOUT_S, retries=1, structured_output=False)
    async def again() -> str:
        """Take long, twice if need be."""
        return "done"

    @server.tool(long_running=True, timeout_seconds=TIMEOUT_S, structured_output=False)
    async def asks(ctx: Context[None]) -> str:
        """Take long, and ask."""
        answer = await ctx.elicit("Which word?", Word, key="word")
        return answer.data.word if answer.action == "accept" else answer.action


class Capped(Deployment):
    """A deployment behind an authorizer, whose store is watched; its callers are nobody another test knows."""

    def __init__(self, store: Any, most: int, **settings: object) -> None:
        self.watched = WatchedStore(store)
        given = {"identity": "lambda_authorizer", "check_call": True, "client_token": "always", **settings}
        super().__init__(offer, self.watched, source="http_api", worker_store=None, max_open_calls=most, **given)
        self.tenant = uuid4().hex
        self.be("alice")

    def be(self, subject: str) -> None:
        authorizer = {"lambda": {"principalId": f"{subject} of {self.tenant}"}}
        self.door = Door(lambda event, context: next(self._servers)(event, context), authorizer=authorizer)

    @property
    def asked(self) -> list[str]:
        """What was asked of the store, without what a call asks in any case."""
        return [asked for asked in self.watched.asked if asked in ("admit", "leave")]

    def is_let_in(self) -> bool:
        """Whether another call is taken in, as a task."""
        answer = self.call("long").result
        if answer["resultType"] == "task":
            return True
        assert is_refusal(answer), answer
        return False


@pytest.fixture
def deploy(store: Any) -> Callable[..., Capped]:
    """Makes a deployment with a cap; on each store."""
    return lambda most, **settings: Capped(store, most, **settings)


def is_refusal(result: JsonObject) -> bool:
    text = text_of(result)
    return (
        text.startswith("You have ") and text.endswith(" running already; wait for one to end.") and result["isError"]
    )


def as_task(deployment: Capped) -> Answer:
    return deployment.call("long")


def in_rounds(deployment: Capped) -> Answer:
    return deployment.call("long", capabilities={})


def polled(deployment: Capped) -> Answer:
    return deployment.door.call("long")


def by_ticket(deployment: Capped) -> Answer:
    return deployment.door.call("long", version="2025-06-18")


WIRES: Final = (as_task, in_rounds, polled, by_ticket)


@pytest.mark.parametrize("wire", WIRES)
def test_calls_are_counted_alike_on_all_wires(deploy: Callable[..., Capped], wire: Callable[[Capped], Answer]) -> None:
    deployment = deploy(4)
    assert {start(deployment).status for start in WIRES} == {200}
    assert len(deployment.watched.created) == 4

    refused = wire(deployment)

    assert text_of(refused.result) == "You have 4 calls running already; wait for one to end."
    assert refused.result["isError"] is True
    assert len(deployment.watched.created) == len(deployment.queue.launched) == 4
    assert deployment.work() == 4
    assert wire(deployment).status == 200
    assert len(deployment.watched.created) == 5


def test_every_caller_has_a_cap_of_its_own(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(2)
    assert [deployment.is_let_in() for _ in range(3)] == [True, True, False]
    deployment.be("bob")
    assert [deployment.is_let_in() for _ in range(3)] == [True, True, False]
    deployment.be("alice")
    assert not deployment.is_let_in()


def test_the_refusal_of_a_second_call_is_in_the_singular(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(1)
    deployment.start("long")
    assert text_of(deployment.call("long").result) == "You have 1 call running already; wait for one to end."


def finished(deployment: Capped, task_id: str) -> None:
    deployment.work()


def cancelled(deployment: Capped, task_id: str) -> None:
    deployment.task("cancel", task_id)


def found_lost(deployment: Capped, task_id: str) -> None:
    claimed(deployment)
    deployment.clock.advance(TIMEOUT_S + LATE_MS / 1000 + 1)
    assert deployment.get(task_id)["status"] == "failed"


def reported_lost(deployment: Capped, task_id: str) -> None:
    deployment.fail_work()
    assert deployment.get(task_id)["status"] == "failed"


ENDS: Final = (finished, cancelled, found_lost, reported_lost)


@pytest.mark.parametrize("end", ENDS)
def test_a_call_that_has_ended_frees_its_place(
    deploy: Callable[..., Capped], end: Callable[[Capped, str], None]
) -> None:
    deployment = deploy(2)
    deployment.start("long")
    deployment.queue.waiting.clear()  # This one goes on.
    task_id = deployment.start("long")
    assert not deployment.is_let_in()

    end(deployment, task_id)

    assert [deployment.is_let_in(), deployment.is_let_in()] == [True, False]


def test_a_legacy_cancellation_frees_the_place(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(1)
    client = LegacyClient(deployment)
    client.call("long", request_id=7)
    assert not deployment.is_let_in()

    client.post({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})

    assert deployment.is_let_in()


@pytest.mark.parametrize(("name", "open_s"), [("long", OPEN_S), ("again", OPEN_S + TIMEOUT_S + LATE_MS / 1000)])
def test_a_call_that_nobody_hears_of_any_more_frees_its_place_by_itself(
    deploy: Callable[..., Capped], name: str, open_s: float
) -> None:
    deployment = deploy(1)
    deployment.start(name)
    claimed(deployment)

    deployment.clock.advance(open_s - 0.001)
    assert not deployment.is_let_in()
    deployment.clock.advance(0.001)
    assert deployment.is_let_in()


def claimed(deployment: Capped) -> None:
    """A worker claims the next call and is never heard of again."""
    ran(deployment.watched.apply(deployment.queue.waiting.pop(0), Claim(), int(deployment.clock() * 1000)))


def test_a_call_that_waits_for_an_answer_keeps_its_place(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(1)
    task_id = deployment.start("asks")
    deployment.work()
    deployment.clock.advance(3 * 3600)
    assert deployment.get(task_id)["status"] == "input_required"
    assert not deployment.is_let_in()

    deployment.answer(task_id, word=accept(word="moon"))
    assert not deployment.is_let_in()
    deployment.work()

    assert text_of(deployment.get(task_id)["result"]) == "moon"
    assert deployment.is_let_in()


def test_a_call_that_asks_before_there_is_a_worker_has_a_place_too(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(1)
    client = LegacyClient(deployment, FORMS)
    deployment.deploy(offer_short)
    client.call("early")
    deployment.clock.advance(3 * 3600)

    assert not deployment.is_let_in()


def offer_short(server: MCPServer) -> None:
    offer(server)

    @server.tool(structured_output=False)
    async def early(ctx: Context[None]) -> str:
        """Ask at once."""
        return (await ctx.elicit("Which word?", Word, key="word")).action


def test_the_same_call_posted_again_takes_no_second_place(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(2)
    client = LegacyClient(deployment)
    ids = {last_id(client.call("long", request_id=1)) for _ in range(3)}
    assert len(deployment.watched.created) == 1

    assert [deployment.is_let_in(), deployment.is_let_in()] == [True, False]
    # At the cap it is still given the call that it has.
    ids.add(last_id(client.call("long", request_id=1)))
    deployment.work()
    assert {text_of(found["result"]) for event_id in ids if (found := response(client.poll(event_id)))} == {"done"}
    assert [deployment.is_let_in(), deployment.is_let_in(), deployment.is_let_in()] == [True, True, False]


def test_a_running_call_keeps_its_place_when_its_id_comes_with_another_call(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(1)
    client = LegacyClient(deployment)
    client.call("long", request_id=1)

    for _ in range(2):
        assert is_refusal(client.call("long", {"text": "other"}, request_id=1).result)

    assert not deployment.is_let_in()
    deployment.work()
    assert deployment.is_let_in()


def test_an_id_that_is_used_again_after_its_call_takes_one_place(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(2)
    client = LegacyClient(deployment)
    client.call("long", request_id=1)
    deployment.work()

    client.call("long", request_id=1)

    assert len(deployment.watched.created) == 2
    assert [deployment.is_let_in(), deployment.is_let_in()] == [True, False]


def failing_launch(deployment: Capped) -> Answer:
    deployment.queue.fails = True
    answer = deployment.call("long")
    deployment.queue.fails = False
    return answer


def failing(what: str, error: Exception) -> Callable[[str], None]:
    def fail(asked: str) -> None:
        if asked == what:
            raise error

    return fail


def raised_by_create(error: Exception) -> Callable[[Capped], Answer]:
    def start(deployment: Capped) -> Answer:
        deployment.watched.before = failing("create", error)
        answer = deployment.call("long")
        deployment.watched.before = lambda asked: None
        return answer

    return start


@pytest.mark.parametrize(
    "start",
    [failing_launch, raised_by_create(StoreUnavailable("throttled")), raised_by_create(RecordTooLarge("too large"))],
    ids=["launch", "outage", "too large"],
)
def test_a_call_that_never_began_holds_no_place(
    deploy: Callable[..., Capped], start: Callable[[Capped], Answer]
) -> None:
    deployment = deploy(1)
    answer = start(deployment).json
    assert "error" in answer or answer["result"]["isError"]
    assert [deployment.is_let_in(), deployment.is_let_in()] == [True, False]


def test_a_request_that_cannot_be_kept_frees_no_place_of_a_running_call(deploy: Callable[..., Capped]) -> None:
    deployment = deploy(1)
    client = LegacyClient(deployment)
    client.call("long", request_id=1)
    for error in (RecordTooLarge("too large"), StoreUnavailable("throttled")):
        deployment.watched.before = failing("create", error)
        client.call("long", {"text": "other"}, request_id=1)

    deployment.watched.before = lambda asked: None
    assert not deployment.is_let_in()


def test_without_the_store_nobody_is_let_in() -> None:
    deployment = Capped(MemoryCallStore(), 1)
    deployment.watched.before = failing("admit", StoreUnavailable("throttled"))
    assert deployment.call("long").error["message"] == NOT_STARTED
    assert deployment.watched.created == []


def test_a_place_that_cannot_be_given_back_costs_no_result(caplog: pytest.LogCaptureFixture) -> None:
    deployment = Capped(MemoryCallStore(), 1)
    task_id = deployment.start("long")
    deployment.watched.before = failing("leave", StoreUnavailable("throttled"))
    deployment.work()
    assert text_of(deployment.get(task_id)["result"]) == "done"
    assert "the place of call" in caplog.text
    assert not deployment.is_let_in()
    deployment.clock.advance(OPEN_S)
    assert deployment.is_let_in()


@pytest.mark.parametrize("wire", WIRES)
def test_a_call_costs_one_write_more_to_take_in_and_one_at_its_end(wire: Callable[[Capped], Answer]) -> None:
    deployment = Capped(MemoryCallStore(), 2)
    wire(deployment)
    deployment.work()
    asked = [what for what in deployment.watched.asked if what != "read"]
    assert asked == ["admit", "create", "Claim", "Finish", "leave"]


def test_a_refused_call_costs_one_request_and_a_poll_costs_what_it_did() -> None:
    deployment = Capped(MemoryCallStore(), 1)
    task_id = deployment.start("long")
    deployment.watched.asked.clear()
    deployment.get(task_id)
    assert deployment.watched.asked == ["read"]
    deployment.watched.asked.clear()
    assert not deployment.is_let_in()
    assert deployment.watched.asked == ["admit"]


@pytest.mark.parametrize(("most", "identity"), [(0, "lambda_authorizer"), (1, "none")])
@pytest.mark.parametrize("end", ENDS)
def test_without_a_cap_and_for_anonymous_callers_nothing_is_counted_and_nothing_paid(
    most: int, identity: str, end: Callable[[Capped, str], None]
) -> None:
    deployment = Capped(MemoryCallStore(), most, identity=identity)
    assert all(deployment.is_let_in() for _ in range(9))
    deployment.work()
    end(deployment, deployment.start("long"))
    assert deployment.asked == []


def test_the_cap_is_a_setting() -> None:
    assert Settings().max_open_calls == 0
    assert Settings.from_environment({"MCP_MAX_OPEN_CALLS": "3"}).max_open_calls == 3
    with pytest.raises(ConfigurationError, match="MCP_MAX_OPEN_CALLS"):
        Settings.from_environment({"MCP_MAX_OPEN_CALLS": "-1"})
