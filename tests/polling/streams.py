"""Event streams as a client reads them: a parser after the WHATWG's rules, and what a polled body says."""

import json
import re
from dataclasses import dataclass
from typing import Any

from tests.http.door import Answer, JsonObject


@dataclass(frozen=True, slots=True)
class Event:
    """One block of a stream. An `id` of None: the block has none, so that of an earlier one still holds."""

    data: str
    id: str | None = None
    name: str = "message"
    retry: int | None = None
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Stream:
    """The events of one body."""

    events: tuple[Event, ...]

    @property
    def messages(self) -> list[JsonObject]:
        return [json.loads(event.data) for event in self.events if event.data]

    @property
    def ids(self) -> list[str]:
        return [event.id for event in self.events if event.id is not None]

    @property
    def last_id(self) -> str:
        """What the client comes back with."""
        return self.ids[-1]

    @property
    def retry(self) -> int | None:
        return next((event.retry for event in self.events if event.retry is not None), None)

    @property
    def progress(self) -> float:
        """The value of the one progress notification."""
        [value] = [
            item["params"]["progress"] for item in self.messages if item.get("method") == "notifications/progress"
        ]
        return float(value)

    @property
    def logs(self) -> list[Any]:
        """The data of the log messages."""
        return [item["params"]["data"] for item in self.messages if item.get("method") == "notifications/message"]

    @property
    def response(self) -> JsonObject | None:
        """The JSON-RPC response, if the stream has come to it; it is then the last message."""
        responses = [item for item in self.messages if "method" not in item]
        assert len(responses) < 2, responses
        assert not responses or responses == self.messages[-1:]
        return responses[0] if responses else None

    @property
    def result(self) -> JsonObject:
        assert self.response is not None, self
        found: JsonObject = self.response["result"]
        return found

    @property
    def text(self) -> str:
        return "\n".join(block["text"] for block in self.result["content"])


def stream(answer: Answer) -> Stream:
    """The stream that an answer carries; every one has to be a 200 that is not cached."""
    assert answer.status == 200, answer
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-store"
    return Stream(tuple(parsed(answer.body)))


def parsed(body: bytes) -> list[Event]:
    """The blocks of a stream, also those without data, which dispatch nothing but set the id and the time to wait."""
    lines = re.split("\r\n|\n|\r", body.decode())
    assert lines[-2:] == ["", ""], "the last block is not ended"
    events: list[Event] = []
    block: list[tuple[str, str]] = []
    for line in lines[:-1]:
        if line:
            name, _, value = line.partition(":")
            block.append((name, value.removeprefix(" ")))
        elif block:
            events.append(_event(block))
            block = []
    return events


def _event(block: list[tuple[str, str]]) -> Event:
    values = dict(block)
    retry = values.get("retry")
    return Event(
        data="\n".join(value for name, value in block if name == "data"),
        id=values.get("id"),
        name=values.get("event", "message"),
        retry=None if retry is None else int(retry),
        fields=tuple(name for name, _ in block),
    )
