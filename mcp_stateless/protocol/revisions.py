"""What each protocol revision knows: one table of revisions, one table of when a field came, and the shaping from them.

Definitions render themselves in the newest revision's shape; before a value goes to a client, what the client's
revision does not define is taken away here. An older client is never sent a field, block or capability it cannot know.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

Wire: TypeAlias = dict[str, object]
"""A JSON object as it goes to the client."""


@dataclass(frozen=True, slots=True)
class Revision:
    """One dated protocol revision. Names order as dates do."""

    name: str
    modern: bool = False
    """Version and capabilities travel with each request (since 2026-07-28); before, `initialize` negotiated them."""
    batches: bool = False
    """A body may be an array of messages (2025-03-26 only)."""
    closes_streams: bool = False
    """The server may close an SSE stream and let the client poll it by `Last-Event-ID` (2025-11-25 only, SEP-1699)."""

    def knows(self, since: str) -> bool:
        return self.name >= since


REVISIONS: Final[Mapping[str, Revision]] = {
    revision.name: revision
    for revision in (
        Revision("2024-11-05"),
        Revision("2025-03-26", batches=True),
        Revision("2025-06-18"),
        Revision("2025-11-25", closes_streams=True),
        Revision("2026-07-28", modern=True),
    )
}
"""Every revision this package speaks, oldest first."""

ASSUMED: Final = REVISIONS["2025-03-26"]
"""Revision of a request without a version header (2025-11-25, transports: "Protocol Version Header")."""

_SINCE: Final[Mapping[str, Mapping[str, str]]] = {
    "implementation": {
        "title": "2025-06-18",
        "description": "2025-11-25",
        "icons": "2025-11-25",
        "websiteUrl": "2025-11-25",
    },
    "capabilities": {"completions": "2025-03-26", "extensions": "2026-07-28"},
    "tool": {
        "annotations": "2025-03-26",
        "title": "2025-06-18",
        "outputSchema": "2025-06-18",
        "_meta": "2025-06-18",
        "icons": "2025-11-25",
    },
    "resource": {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"},
    "prompt": {"title": "2025-06-18", "_meta": "2025-06-18", "icons": "2025-11-25"},
    "argument": {"title": "2025-06-18"},
    "content": {"_meta": "2025-06-18", "icons": "2025-11-25"},
    "contents": {"_meta": "2025-06-18"},
    "annotations": {"lastModified": "2025-06-18"},
    "call": {"structuredContent": "2025-06-18"},
    "progress": {"message": "2025-03-26"},
}
"""For each kind of object, the revision in which a field came; a field that is not named was there from the start."""

_BLOCK_SINCE: Final[Mapping[str, str]] = {"audio": "2025-03-26", "resource_link": "2025-06-18"}
"""The revision in which a type of content block came."""


def fields(kind: str, wire: Mapping[str, object], revision: Revision) -> Wire:
    """The fields of `wire` that `revision` defines for this kind of object."""
    since = _SINCE[kind]
    return {key: value for key, value in wire.items() if since.get(key, "") <= revision.name}


def tool(wire: Mapping[str, object], revision: Revision) -> Wire:
    """A tool of `tools/list`. The output schema is already an object's where the revision wants one."""
    shaped = fields("tool", wire, revision)
    schema = shaped["inputSchema"]
    if not revision.knows("2025-11-25") and isinstance(schema, dict) and "$schema" in schema:
        shaped["inputSchema"] = {key: value for key, value in schema.items() if key != "$schema"}
    return shaped


def resource(wire: Mapping[str, object], revision: Revision) -> Wire:
    """A resource or resource template of a list."""
    return _annotated(fields("resource", wire, revision), revision)


def prompt(wire: Mapping[str, object], revision: Revision) -> Wire:
    """A prompt of `prompts/list`."""
    shaped = fields("prompt", wire, revision)
    if isinstance(arguments := shaped.get("arguments"), list):
        shaped["arguments"] = [fields("argument", argument, revision) for argument in arguments]
    return shaped


def content(wire: Mapping[str, object], revision: Revision) -> Wire:
    """A content block. A type the revision does not have becomes a text block that says what was there."""
    if _BLOCK_SINCE.get(str(wire["type"]), "") > revision.name:
        return {"type": "text", "text": _described(wire)}
    shaped = _annotated(fields("content", wire, revision), revision)
    if isinstance(embedded := shaped.get("resource"), dict):
        shaped["resource"] = fields("contents", embedded, revision)
    return shaped


def contents(wire: Mapping[str, object], revision: Revision) -> Wire:
    """One entry of the `contents` of `resources/read`."""
    return fields("contents", wire, revision)


def message(wire: Mapping[str, object], revision: Revision) -> Wire:
    """A message of `prompts/get`."""
    block = wire["content"]
    assert isinstance(block, dict), "prompt definitions render each content as one block"
    return {**wire, "content": content(block, revision)}


def question(wire: Mapping[str, object], request_id: str, revision: Revision) -> Wire:
    """A request to a legacy client. Modes of elicitation came with 2025-11-25, where a URL has an id of its own."""
    params = wire["params"]
    assert isinstance(params, dict), "questions have params"
    if not revision.knows("2025-11-25"):
        params = {key: value for key, value in params.items() if key != "mode"}
    elif params.get("mode") == "url":
        params = {**params, "elicitationId": request_id}
    return {"method": wire["method"], "params": params}


def newest_legacy(served: Sequence[str]) -> Revision | None:
    """The newest served revision that has a handshake; what `initialize` falls back to."""
    legacy = [name for name in served if not REVISIONS[name].modern]
    return REVISIONS[legacy[-1]] if legacy else None


def modern_names(served: Sequence[str]) -> list[str]:
    """The served revisions without a handshake: what a client may name in a request's `_meta`."""
    return [name for name in served if REVISIONS[name].modern]


def _annotated(wire: Wire, revision: Revision) -> Wire:
    if isinstance(annotations := wire.get("annotations"), dict):
        wire["annotations"] = fields("annotations", annotations, revision)
    return wire


def _described(block: Mapping[str, object]) -> str:
    if block["type"] == "resource_link":
        return f"{block['name']}: {block['uri']}"
    return f"[{block['mimeType']} content, which this protocol revision cannot carry]"
