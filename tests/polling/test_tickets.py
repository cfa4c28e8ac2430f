"""`check_call`: clients that cannot come back on their own are given a ticket, and a tool that takes it."""

import secrets
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.calls.tickets import PURPOSE
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.protocol.sealing import KeyRing, seal
from tests.http.door import Answer, Door
from tests.polling.world import KEY, SECONDS, Clock

WRONG = "This ticket does not hold. Call the tool again."


class Office:
    """A server that gives tickets and works in a thread; the tool goes on when it is released."""

    def __init__(self) -> None:
        values = {"signing_keys": (KEY,), "polling": "memory", "check_call": True, "round_hold_s": 0}
        self.clock, self.released, self.reported = Clock(), threading.Event(), threading.Event()
        self.server = MCPServer("office", "1", settings=Settings.model_validate(values), clock=self.clock)
        self.call_ids: list[str] = []

        @self.server.tool(long_running=True, structured_output=False)
        def long(n: int, ctx: Context[None]) -> str:
            """Take long."""
            self.released.wait(SECONDS)
            return f"result {n}"

        self.door = Door(self.server.lambda_handler())

    def start(self, n: int = 1) -> str:
        answer = self.door.call("long", {"n": n}, version="2025-06-18")
        assert answer.headers["content-type"] == "application/json"
        assert not answer.result["isError"]
        assert answer.text.startswith("long is still running. Call check_call with this ticket")
        return answer.text.rpartition(" ")[2]

    def check(self, ticket: Any) -> Answer:
        return self.door.call("check_call", {"ticket": ticket}, version="2025-06-18")

    def result(self, ticket: str) -> str:
        """What becomes of the call, asked for as often as it takes."""
        self.released.set()
        for _ in range(2000):
            answer = self.check(ticket)
            if "still running" not in answer.text:
                return answer.text
            threading.Event().wait(0.005)
        raise AssertionError("the call does not end")


@pytest.fixture
def office() -> Iterator[Office]:
    office = Office()
    yield office
    office.released.set()


def test_a_client_without_polling_gets_a_ticket_and_with_it_the_result(office: Office) -> None:
    first, second = office.start(1), office.start(2)
    told = office.check(first)
    assert not told.result["isError"]
    assert told.text == "long is still running. Call check_call again with the same ticket."
    assert office.result(first) == "result 1"
    assert office.result(second) == "result 2"
    assert office.result(first) == "result 1"


def test_check_call_is_an_ordinary_tool(office: Office) -> None:
    tools = office.door.legacy("tools/list").result["tools"]
    [described] = [tool for tool in tools if tool["name"] == "check_call"]
    assert described["inputSchema"]["required"] == ["ticket"]


def test_a_client_that_polls_gets_no_ticket(office: Office) -> None:
    assert office.door.call("long", {"n": 1}).headers["content-type"] == "text/event-stream"


def test_a_ticket_is_not_offered_by_default() -> None:
    values = {"signing_keys": (KEY,), "polling": "memory", "state_rounds": False}
    server = MCPServer("plain", "1", settings=Settings.model_validate(values))

    @server.tool(long_running=True)
    def long() -> int:
        """Take long."""
        return 1

    door = Door(server.lambda_handler())
    assert [tool["name"] for tool in door.legacy("tools/list").result["tools"]] == ["long"]
    assert door.call("long", version="2025-06-18").result["structuredContent"] == {"result": 1}


def forgeries(office: Office, ticket: str) -> Iterator[str]:
    expires_at = int(office.clock()) + 60
    ring, body = KeyRing((KEY.encode(),)), b"never-stored-in-here-00"
    yield from ("", "x", ticket[:-1], ticket + "A", ("B" if ticket[0] == "A" else "A") + ticket[1:])
    yield seal(KeyRing((secrets.token_bytes(32),)), PURPOSE, body, bound_to=(ANONYMOUS.key,), expires_at=expires_at)
    yield seal(ring, PURPOSE, body, bound_to=(Principal("i", "Bob").key,), expires_at=expires_at)
    yield seal(ring, "event", body, bound_to=(ANONYMOUS.key,), expires_at=expires_at)
    yield seal(ring, PURPOSE, body, bound_to=(ANONYMOUS.key,), expires_at=int(office.clock()))


def test_forged_foreign_and_expired_tickets_are_told_apart_by_nobody(office: Office) -> None:
    for wrong in forgeries(office, office.start()):
        answer = office.check(wrong)
        assert answer.result["isError"]
        assert answer.text == WRONG


def test_a_ticket_expires_with_its_call(office: Office) -> None:
    ticket = office.start()
    office.clock.advance(6 * 3600)
    assert office.check(ticket).text == WRONG


def test_a_ticket_of_a_call_that_is_gone_is_told_so(office: Office) -> None:
    ring, body = KeyRing((KEY.encode(),)), b"never-stored-in-here-00"
    gone = seal(ring, PURPOSE, body, bound_to=(ANONYMOUS.key,), expires_at=int(office.clock()) + 60)
    answer = office.check(gone)
    assert answer.result["isError"]
    assert answer.text == "The result of this call is not kept any more. Call the tool again."
