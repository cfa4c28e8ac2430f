"""What a caller is given to come back with holds for that caller only; another one is told what a forger is told."""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from typing import Any, Final

import pytest

from mcp_stateless.calls.client_token import HEADER
from tests.auth.deployment import Behind
from tests.http.door import FORMS, Answer
from tests.tasks.deployment import TASKS, accept, last_id, requests, response, text_of

STRANGERS: Final[list[dict[str, Any]]] = [
    {"subject": "bob"},
    {"subject": "alice", "issuer": "https://other.example"},
    {"subject": "Alice"},
    {"subject": "ealice", "issuer": "https://idp.exampl"},
]
"""The last one's issuer and subject read like Alice's when they are put together."""

OTHERS: Final = pytest.mark.parametrize("stranger", STRANGERS, ids=lambda who: f"{who['subject']}")


@pytest.fixture
def deployed() -> Behind:
    deployment = Behind()
    deployment.be("alice")
    return deployment


def same(one: Answer, other: Answer) -> None:
    assert (one.status, one.body) == (other.status, other.body)


# B62, A44
@OTHERS
def test_an_event_id(deployed: Behind, stranger: dict[str, Any]) -> None:
    client = deployed.legacy_client("alice")
    event_id = last_id(client.call("long", {"secret": "s"}))
    deployed.work()
    deployed.be(**stranger)
    same(deployed.get_event(event_id), deployed.get_event("made-up"))
    deployed.be(None)
    assert deployed.get_event(event_id).status == 401
    deployed.be("alice")
    assert b"alice: s" in deployed.get_event(event_id).body


# B133
@OTHERS
def test_a_task_id(deployed: Behind, stranger: dict[str, Any]) -> None:
    task_id = deployed.start("long_asks", {"secret": "s"})
    deployed.work()
    deployed.be(**stranger)
    for method, params in (("get", {}), ("cancel", {}), ("update", {"inputResponses": {"word": accept(word="w")}})):
        refused = deployed.task(method, task_id, **params)
        same(refused, deployed.task(method, "made-up", **params))
        assert refused.error["code"] == -32602
    deployed.be("alice")
    assert deployed.get(task_id)["status"] == "input_required"
    deployed.answer(task_id, word=accept(word="mine"))
    deployed.work()
    assert text_of(deployed.get(task_id)["result"]) == "s: mine"


@OTHERS
@pytest.mark.parametrize("tool", ["asks", "long_asks"])
def test_a_request_state(deployed: Behind, stranger: dict[str, Any], tool: str) -> None:
    """The state of a round in place, and that of a call that runs elsewhere."""
    first = deployed.call(tool, {"secret": "s"}, capabilities=FORMS).result
    deployed.work()
    again: dict[str, Any] = {"requestState": first["requestState"]}
    if tool == "long_asks":
        again["requestState"] = deployed.call(tool, {"secret": "s"}, capabilities=FORMS, **again).result["requestState"]
    answered = {**again, "inputResponses": {"word": accept(word="theirs")}}
    deployed.be(**stranger)
    same(
        deployed.call(tool, {"secret": "s"}, capabilities=FORMS, **answered),
        deployed.call(tool, {"secret": "s"}, capabilities=FORMS, **{**answered, "requestState": prefix(again)}),
    )
    deployed.be("alice")
    answered["inputResponses"] = {"word": accept(word="mine")}
    last = deployed.call(tool, {"secret": "s"}, capabilities=FORMS, **answered).result
    if tool == "long_asks":
        deployed.work()
        last = deployed.call(tool, {"secret": "s"}, capabilities=FORMS, requestState=last["requestState"]).result
    assert text_of(last) == "s: mine"


def prefix(again: dict[str, Any]) -> str:
    """A made-up state of the same kind."""
    return "wait.made-up" if again["requestState"].startswith("wait.") else "made-up"


@OTHERS
def test_a_ticket(stranger: dict[str, Any]) -> None:
    deployed = Behind(check_call=True, no_poll_user_agents=("mute/",))
    deployed.be("alice")
    given = deployed.door.call("long", {"secret": "s"}, headers={"user-agent": "mute/1"})
    ticket = given.text.rpartition(" ")[2]
    deployed.work()
    deployed.be(**stranger)
    same(deployed.door.call("check_call", {"ticket": ticket}), deployed.door.call("check_call", {"ticket": "made-up"}))
    deployed.be("alice")
    assert deployed.door.call("check_call", {"ticket": ticket}).text == "alice: s"


# B132: a repeated request finds its call by the client token.
@OTHERS
def test_a_client_token(stranger: dict[str, Any]) -> None:
    deployed = Behind(client_token="always")
    client = deployed.legacy_client("alice")
    token = client.headers[HEADER]
    begun = client.call("long", {"secret": "s"}, request_id=7)
    deployed.be(**stranger)
    theirs = deployed.door.call("long", {"secret": "s"}, headers={**client.headers}, request_id=7)
    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
    same(
        deployed.door.post(cancelled, {"mcp-protocol-version": "2025-11-25", HEADER: token}),
        deployed.door.post(cancelled, {"mcp-protocol-version": "2025-11-25", HEADER: "made-up"}),
    )
    assert len(deployed.queue.launched) == 2
    deployed.work()
    deployed.be("alice")
    assert b"alice: s" in deployed.get_event(last_id(begun)).body
    deployed.be(**stranger)
    assert f"{stranger['subject']}: s".encode() in deployed.get_event(last_id(theirs)).body
    deployed.be("alice")
    client.call("long", {"secret": "t"}, request_id=8)
    assert (
        deployed.door.post(
            {**cancelled, "params": {"requestId": 8}}, {"mcp-protocol-version": "2025-11-25", HEADER: token}
        ).status
        == 202
    )
    assert deployed.work() == 1


@OTHERS
def test_a_posted_answer(deployed: Behind, stranger: dict[str, Any]) -> None:
    client = deployed.legacy_client("alice")
    begun = client.call("long_asks", {"secret": "s"})
    deployed.work()
    polled = client.poll(last_id(begun))
    [question] = requests(polled)
    deployed.be(**stranger)
    reply = {"jsonrpc": "2.0", "id": question["id"], "result": accept(word="theirs")}
    headers = {"mcp-protocol-version": "2025-11-25"}
    same(deployed.door.post(reply, headers), deployed.door.post({**reply, "id": "made-up"}, headers))
    assert deployed.work() == 0
    deployed.be("alice")
    client.respond(question, accept(word="mine"))
    deployed.work()
    ended = response(deployed.get_event(last_id(polled)))
    assert ended is not None
    assert text_of(ended["result"]) == "s: mine"


def test_scopes_and_claims_may_change_in_a_call(deployed: Behind) -> None:
    task_id = deployed.start("long_asks", {"secret": "s"})
    deployed.work()
    deployed.be("alice", scope="more scopes", client_id="another app", email="new@example.com")
    assert deployed.get(task_id)["status"] == "input_required"
    deployed.answer(task_id, word=accept(word="w"))
    deployed.work()
    deployed.be("alice")
    assert deployed.get(task_id)["status"] == "completed"


# B97: what a worker knows of the caller.
def test_a_stored_call_has_its_caller_and_no_credentials(deployed: Behind) -> None:
    sent = {"authorization": "Bearer sesame", "cookie": "session=sesame", "x-api-key": "sesame", "user-agent": "c/1"}
    deployed.be("alice", scope="read", email="alice@example.com")
    created = deployed.door.modern("tools/call", {"name": "told"}, capabilities=TASKS, headers={**sent}).result
    [call_id] = deployed.queue.launched
    stored = asyncio.run(deployed.memory.read(call_id, 0, int(deployed.clock() * 1000)))
    assert stored is not None
    assert stored.record.request.principal.claims["email"] == "alice@example.com"
    assert "sesame" not in repr(stored)
    deployed.work()
    told = text_of(deployed.get(created["taskId"])["result"])
    assert "issuer='https://idp.example', subject='alice'" in told
    assert "scopes=frozenset({'read'})" in told
    assert "'email'" in told
    assert "'user-agent'" in told
    for name in ("authorization", "cookie", "x-api-key"):
        assert name not in told


def test_anonymous_callers_hold_what_they_were_given_like_a_key() -> None:
    """Nothing tells them apart, so whoever has an id may use it."""
    deployed = Behind(identity="none")
    deployed.be(None)
    task_id = deployed.start("long", {"secret": "s"})
    deployed.work()
    deployed.be("bob")
    assert text_of(deployed.get(task_id)["result"]) == ": s"


@dataclass(frozen=True, slots=True)
class Handle:
    """Something a caller was given."""

    owner: str
    kind: str
    value: str
    secret: str


def use(deployed: Behind, kind: str, value: str, secret: str) -> Answer:
    """Come back with it; a question on the way is answered."""
    answers = {"word": accept(word="w")}
    match kind:
        case "event":
            return deployed.get_event(value)
        case "task":
            return deployed.task("get", value)
        case "update":
            return deployed.task("update", value, inputResponses=answers)
        case "cancel":
            return deployed.task("cancel", value)
        case "state":
            return deployed.call(
                "asks", {"secret": secret}, capabilities=FORMS, requestState=value, inputResponses=answers
            )
        case "wait":
            return deployed.call("long", {"secret": secret}, capabilities=FORMS, requestState=value)
        case "ticket":
            return deployed.door.call("check_call", {"ticket": value})
        case _:
            headers = {"mcp-protocol-version": "2025-11-25"}
            return deployed.door.post({"jsonrpc": "2.0", "id": value, "result": accept(word="w")}, headers)


def start(deployed: Behind, kind: str, secret: str) -> str:
    """Begin something that is come back for in this way."""
    match kind:
        case "event" | "ticket":
            headers = {"user-agent": "mute/1" if kind == "ticket" else "c/1"}
            begun = deployed.door.call("long", {"secret": secret}, headers=headers)
            return begun.text.rpartition(" ")[2] if kind == "ticket" else last_id(begun)
        case "task" | "update" | "cancel":
            return deployed.start("long" if kind == "task" else "long_asks", {"secret": secret})
        case "state":
            state: str = deployed.call("asks", {"secret": secret}, capabilities=FORMS).result["requestState"]
            return state
        case "wait":
            waiting: str = deployed.call("long", {"secret": secret}, capabilities=FORMS).result["requestState"]
            return waiting
        case _:
            client = deployed.legacy_client(secret.partition("-")[0])
            begun = client.call("long_asks", {"secret": secret})
            deployed.work()
            return str(requests(client.poll(last_id(begun)))[0]["id"])


KINDS: Final = ("event", "task", "update", "cancel", "state", "wait", "ticket", "answer")
OPERATIONS: Final = 10_000


def test_ten_thousand_interleaved_operations_of_two_callers_read_nothing_of_each_other() -> None:
    deployed = Behind(check_call=True, no_poll_user_agents=("mute/",), client_token="always")
    dice, handles, seen = random.Random(5), list[Handle](), Counter[str]()
    refusals: dict[str, tuple[int, bytes]] = {}
    deployed.be("alice")
    for kind in KINDS:
        made_up = use(deployed, kind, "wait.made-up" if kind == "wait" else "made-up", "")
        refusals[kind] = made_up.status, made_up.body
    for number in range(OPERATIONS):
        caller, other = dice.choice([("alice", "bob"), ("bob", "alice")])
        deployed.be(caller)
        if dice.random() < 0.02:
            deployed.work()
        if len(handles) < 8 or dice.random() < 0.05:
            kind, secret = dice.choice(KINDS), f"{caller}-{number}"
            handles = [*handles[-40:], Handle(caller, kind, start(deployed, kind, secret), secret)]
            continue
        handle = dice.choice(handles)
        answer = use(deployed, handle.kind, handle.value, handle.secret if handle.kind in ("state", "wait") else "")
        if handle.owner == caller:
            seen[f"own {handle.kind}"] += 1
            seen["own result"] += handle.secret.encode() in answer.body
            assert handle.kind == "answer" or (answer.status, answer.body) != refusals[handle.kind], handle
            assert f"{other}-".encode() not in answer.body
        else:
            seen["foreign"] += 1
            assert (answer.status, answer.body) == refusals[handle.kind], handle
    assert seen["foreign"] > OPERATIONS / 3
    assert seen["own result"] > OPERATIONS / 20
    assert all(seen[f"own {kind}"] > OPERATIONS / 100 for kind in KINDS), seen
