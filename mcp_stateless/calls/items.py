"""How a call lies in its DynamoDB partition: items and attributes as the low-level client has them. Pure.

One partition a call. Its sort keys, low to high:

    below 0                          arguments over `INLINE_ARGUMENT_BYTES`, in parts: a worker reads them, once
    attempt * 10^9 + number          log batches; each attempt has its own numbers, so it is their only writer
    5 * 10^14 and more               an outcome over `INLINE_OUTCOME_BYTES`, in parts
    10^15                            the head: everything else. It sorts last, so one query from a log batch on
                                     returns what is new and how the call stands

The places of a caller, where calls are capped, are one item in a partition of its own: until when which call has one.

Payloads are JSON text: a DynamoDB number is no JSON number (floats, `1.0`). A text in the head is a string; in its
place a list `[first, count]` says where the parts of it lie.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from typing import Any, Final, TypeAlias

from mcp_stateless.calls.record import LATE_MS, SCHEMA, CallRecord, Progress, State, StoredRequest
from mcp_stateless.calls.store import MAX_TEXT_BYTES, Entry, RecordTooLarge
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.revisions import Wire

Attribute: TypeAlias = dict[str, Any]
"""A value with its type: `{"N": "1"}`."""
Item: TypeAlias = dict[str, Attribute]

MAX_ITEM_BYTES: Final = 400 * 1024
"""DynamoDB's quota, attribute names included."""
INLINE_ARGUMENT_BYTES: Final = 2 * 1024
"""Longer arguments would be read again by every poll and paid again by every write of the head."""
INLINE_OUTCOME_BYTES: Final = 350_000
PART_BYTES: Final = 350 * 1024

HEAD: Final = 10**15
OUTCOME_PARTS: Final = 5 * 10**14
SPARE: Final = "." * 64
"""Room in the head that ending the call gives back: one that is full of steps can still end."""


@dataclass(frozen=True, slots=True)
class Placed:
    """A text as it is stored: the attribute of the head, and the parts beside it, by sort key."""

    attribute: Attribute
    parts: Mapping[int, bytes]


def number(value: int) -> Attribute:
    return {"N": str(value)}


def string(text: str) -> Attribute:
    # A lone surrogate, which JSON text may hold and UTF-8 may not, means the same as its escape.
    return {"S": _utf8(text).decode()}


def json_string(value: object) -> Attribute:
    return string(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def map_key(name: str) -> str:
    """A name of the author's as key of a map: never empty, always UTF-8."""
    return json.dumps(name)


def key(call_id: str, sort: int) -> Item:
    return {"pk": {"S": f"c#{call_id}"}, "sk": number(sort)}


def places_key(caller: str) -> Item:
    return {"pk": {"S": f"p#{caller}"}, "sk": number(0)}


def ttl(until_ms: int) -> Attribute:
    """Whole seconds, as DynamoDB wants them; never before the record is gone for readers."""
    return number(-(-until_ms // 1000))


def place(text: str, inline_bytes: int, first: int) -> Placed:
    """Put a text into the head, or into parts from the sort key `first` on if it is longer than `inline_bytes`.

    Raises:
        RecordTooLarge: it is longer than a call can hold.
    """
    data = _utf8(text)
    if len(data) > MAX_TEXT_BYTES:
        raise RecordTooLarge(
            f"{len(data)} bytes of JSON; a call holds arguments and an outcome of {MAX_TEXT_BYTES} each"
        )
    if len(data) <= inline_bytes:
        return Placed({"S": data.decode()}, {})
    starts = range(0, len(data), PART_BYTES)
    parts = {first + index: data[start : start + PART_BYTES] for index, start in enumerate(starts)}
    return Placed({"L": [number(first), number(len(parts))]}, parts)


def place_of_parts(attribute: Attribute | None) -> range | None:
    """The sort keys of the parts of a text; None: it is not in parts."""
    if attribute is None or "L" not in attribute:
        return None
    first, count = (int(value["N"]) for value in attribute["L"])
    return range(first, first + count)


def joined(place: range, items: Iterable[Item]) -> str | None:
    """The text whose parts lie at `place`, among other items; None: one is missing."""
    parts = {int(item["sk"]["N"]): item["part"]["B"] for item in items if "part" in item}
    if not all(sort in parts for sort in place):
        return None
    return b"".join(parts[sort] for sort in place).decode()


def part(call_id: str, sort: int, data: bytes, until_ms: int) -> Item:
    return {**key(call_id, sort), "ttl": ttl(until_ms), "part": {"B": data}}


def batch(call_id: str, sort: int, messages: Iterable[Wire], until_ms: int) -> Item:
    return {**key(call_id, sort), "ttl": ttl(until_ms), "messages": json_string(list(messages))}


def entries(items: Iterable[Item]) -> list[Entry]:
    """The log batches among items of a call."""
    return [Entry(int(item["sk"]["N"]), json.loads(item["messages"]["S"])) for item in items if "messages" in item]


def head(record: CallRecord, arguments: Attribute, move_id: str) -> Item:
    """The item of a new record."""
    item = {
        **key(record.call_id, HEAD),
        "ttl": ttl(record.until_ms),
        "schema": number(SCHEMA),
        "move": string(move_id),
        "spare": string(SPARE),
        "state": string(record.state),
        "attempt": number(record.attempt),
        "max": number(record.max_attempts),
        "open": number(record.open),
        "created": number(record.created_ms),
        "due": number(record.due_ms),
        "updated": number(record.updated_ms),
        "lease": number(record.request.timeout_s * 1000 + LATE_MS),
        "until": number(record.until_ms),
        "request": json_string(_request_to_json(record.request)),
        "arguments": arguments,
        "questions": _map_of(record.questions),
        "answers": _map_of(record.answers),
        "steps": _map_of(record.steps),
    }
    if record.progress is not None:
        item["progress"] = progress(record.progress)
    if record.outcome is not None:
        item["outcome"] = string(record.outcome)
    return item


def record(item: Item) -> CallRecord | None:
    """The record of a head, its texts empty where they are in parts; None: it is of another version of the schema."""
    if item.get("schema") != number(SCHEMA):
        return None
    return CallRecord(
        call_id=item["pk"]["S"].removeprefix("c#"),
        request=_request_from_json(json.loads(item["request"]["S"])),
        arguments=item["arguments"].get("S", ""),
        created_ms=int(item["created"]["N"]),
        due_ms=int(item["due"]["N"]),
        until_ms=int(item["until"]["N"]),
        updated_ms=int(item["updated"]["N"]),
        state=State(item["state"]["S"]),
        attempt=int(item["attempt"]["N"]),
        max_attempts=int(item["max"]["N"]),
        open=int(item["open"]["N"]),
        progress=Progress(**json.loads(item["progress"]["S"])) if "progress" in item else None,
        questions=_from_map(item["questions"]),
        answers=_from_map(item["answers"]),
        steps=_from_map(item["steps"]),
        outcome=item["outcome"].get("S") if "outcome" in item else None,
    )


def places(item: Item) -> dict[str, int]:
    """Until when which call has a place, of the item of a caller; of no item, none."""
    return {call_id: int(until["N"]) for call_id, until in item.get("open", {"M": {}})["M"].items()}


def progress(value: Progress) -> Attribute:
    return json_string({name: getattr(value, name) for name in ("progress", "total", "message", "version")})


def size(attributes: Mapping[str, Attribute]) -> int:
    """Bytes, as DynamoDB counts an item; numbers are counted by their digits, which is a little more."""
    return sum(len(_utf8(name)) + _size(value) for name, value in attributes.items())


def _size(attribute: Attribute) -> int:
    ((kind, value),) = attribute.items()
    match kind:
        case "M":
            return 3 + sum(1 + len(_utf8(name)) + _size(inner) for name, inner in value.items())
        case "L":
            return 3 + sum(1 + _size(inner) for inner in value)
        case _:
            return len(_utf8(value))


def _utf8(text: str) -> bytes:
    return text.encode("utf-8", "backslashreplace")


def _map_of(values: Mapping[str, object]) -> Attribute:
    return {"M": {map_key(name): json_string(value) for name, value in values.items()}}


def _from_map(attribute: Attribute) -> dict[str, Any]:
    return {json.loads(name): json.loads(value["S"]) for name, value in attribute["M"].items()}


def _request_to_json(request: StoredRequest) -> Wire:
    caller = request.principal
    plain = {field.name: getattr(request, field.name) for field in fields(request)}
    return plain | {
        "client_capabilities": dict(request.client_capabilities),
        "headers": dict(request.headers),
        "principal": {
            "issuer": caller.issuer,
            "subject": caller.subject,
            "client_id": caller.client_id,
            "scopes": sorted(caller.scopes),
            "claims": dict(caller.claims),
        },
    }


def _request_from_json(data: dict[str, Any]) -> StoredRequest:
    caller = data["principal"]
    return StoredRequest(**data | {"principal": Principal(**caller | {"scopes": frozenset(caller["scopes"])})})
