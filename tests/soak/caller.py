"""A client at 2025-11-25 that makes one long call and remembers all it was sent, so that nothing can slip by."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from mcp_stateless.testing.gateway import Gateway, HttpResponse

HEADERS: Final = {
    "content-type": "application/json",
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2025-11-25",
}
PATIENCE: Final = 2
"""Failed polls in a row after which the official clients give a call up."""


@dataclass(slots=True)
class Outcome:
    """One call: what was sent, and what came back until its end."""

    rpc_id: int
    token: str
    steps: int
    seconds: float = 0.0
    polls: int = 0
    event_ids: list[str] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    gave_up: str = ""
    after_the_end: int = 405
    """The status of a poll with the final id."""

    @property
    def responses(self) -> list[dict[str, Any]]:
        return [message for message in self.messages if "method" not in message]

    @property
    def result(self) -> str | None:
        """The text of the result, if the call ended in one that is no error."""
        found = self.responses[-1].get("result") if self.responses else None
        return None if found is None or found["isError"] else str(found["content"][0]["text"])

    @property
    def error(self) -> str | None:
        """What the call ended in, if that is an error."""
        if not self.responses:
            return None
        last = self.responses[-1]
        if "error" in last:
            return str(last["error"]["message"])
        return str(last["result"]["content"][0]["text"]) if last["result"]["isError"] else None


def call(gateway: Gateway, rpc_id: int, steps: int, pause_ms: int, end: float) -> Outcome:
    """Call `count`, and poll as the server says until there is a response; not past `end` (`time.monotonic()`)."""
    outcome = Outcome(rpc_id, f"token-{rpc_id}", steps)
    arguments = {"token": outcome.token, "steps": steps, "pause_ms": pause_ms}
    params = {"name": "count", "arguments": arguments, "_meta": {"progressToken": outcome.token}}
    message = {"jsonrpc": "2.0", "id": rpc_id, "method": "tools/call", "params": params}
    started = time.monotonic()
    response = gateway.send("POST", "/mcp", HEADERS, json.dumps(message).encode())
    retry_s = _take(response, outcome)
    failed = 0
    while not outcome.responses and not outcome.gave_up:
        time.sleep(retry_s)
        if time.monotonic() > end:
            outcome.gave_up = "no end in sight"
            break
        response = _poll(gateway, outcome)
        failed = failed + 1 if response.status != 200 else 0
        if failed < PATIENCE and response.status >= 500:
            continue
        retry_s = _take(response, outcome)
    outcome.seconds = time.monotonic() - started
    if not outcome.gave_up and outcome.event_ids:
        outcome.after_the_end = _poll(gateway, outcome).status
    return outcome


def _poll(gateway: Gateway, outcome: Outcome) -> HttpResponse:
    outcome.polls += 1
    return gateway.send("GET", "/mcp", {**HEADERS, "last-event-id": outcome.event_ids[-1]})


def _take(response: HttpResponse, outcome: Outcome) -> float:
    """Keep what came; returns the seconds to wait."""
    retry_s = 0.0
    if response.header("content-type") == "text/event-stream":
        for event in _events(response.body.decode()):
            if "id" in event:
                outcome.event_ids.append(event["id"])
            if event.get("data"):
                outcome.messages.append(json.loads(event["data"]))
            retry_s = int(event.get("retry", 0)) / 1000 or retry_s
    elif response.status == 200:
        outcome.messages.append(json.loads(response.body))
    else:
        outcome.gave_up = f"status {response.status}: {response.body.decode()[:200]}"
    return retry_s


def _events(stream: str) -> Iterator[dict[str, str]]:
    for event in stream.split("\n\n"):
        if event:
            yield dict(line.partition(": ")[::2] for line in event.splitlines())
