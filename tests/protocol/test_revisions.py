"""What each revision is sent: every field, block and capability is one that the revision defines."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any

import pytest
from mcp_types import methods
from pydantic import BaseModel, Field

from mcp_stateless import (
    Annotations,
    Audio,
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    Completion,
    Context,
    EmbeddedResource,
    Icon,
    Image,
    ImageContent,
    MCPServer,
    Message,
    ResourceLink,
    Settings,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
)
from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.revisions import REVISIONS
from tests.http.door import FORMS, LEGACY, MODERN, Answer, Door, initialize

Fields = Mapping[str, str]
"""Field -> the revision that brought it. Written from the published schemas, apart from the product's own table."""

ALWAYS, V0326, V0618, V1125 = LEGACY

ANNOTATIONS: Fields = {"audience": ALWAYS, "priority": ALWAYS, "lastModified": V0618}
ICON: Fields = {"src": V1125, "mimeType": V1125, "sizes": V1125, "theme": V1125}
OBJECTS: Mapping[str, Fields] = {
    "implementation": {
        "name": ALWAYS,
        "version": ALWAYS,
        "title": V0618,
        "icons": V1125,
        "description": V1125,
        "websiteUrl": V1125,
    },
    "capabilities": {
        "tools": ALWAYS,
        "prompts": ALWAYS,
        "resources": ALWAYS,
        "logging": ALWAYS,
        "completions": V0326,
    },
    "tool": {
        "name": ALWAYS,
        "description": ALWAYS,
        "inputSchema": ALWAYS,
        "annotations": V0326,
        "title": V0618,
        "outputSchema": V0618,
        "_meta": V0618,
        "icons": V1125,
    },
    "tool annotations": {
        "title": V0326,
        "readOnlyHint": V0326,
        "destructiveHint": V0326,
        "idempotentHint": V0326,
        "openWorldHint": V0326,
    },
    "resource": {
        "uri": ALWAYS,
        "name": ALWAYS,
        "description": ALWAYS,
        "mimeType": ALWAYS,
        "size": ALWAYS,
        "annotations": ALWAYS,
        "title": V0618,
        "_meta": V0618,
        "icons": V1125,
    },
    "template": {
        "uriTemplate": ALWAYS,
        "name": ALWAYS,
        "description": ALWAYS,
        "mimeType": ALWAYS,
        "annotations": ALWAYS,
        "title": V0618,
        "_meta": V0618,
        "icons": V1125,
    },
    "prompt": {
        "name": ALWAYS,
        "description": ALWAYS,
        "arguments": ALWAYS,
        "title": V0618,
        "_meta": V0618,
        "icons": V1125,
    },
    "argument": {"name": ALWAYS, "description": ALWAYS, "required": ALWAYS, "title": V0618},
    "contents": {"uri": ALWAYS, "mimeType": ALWAYS, "text": ALWAYS, "blob": ALWAYS, "_meta": V0618},
    "text": {"type": ALWAYS, "text": ALWAYS, "annotations": ALWAYS, "_meta": V0618},
    "image": {"type": ALWAYS, "data": ALWAYS, "mimeType": ALWAYS, "annotations": ALWAYS, "_meta": V0618},
    "audio": {"type": V0326, "data": V0326, "mimeType": V0326, "annotations": V0326, "_meta": V0618},
    "embedded": {"type": ALWAYS, "resource": ALWAYS, "annotations": ALWAYS, "_meta": V0618},
    "link": {
        "type": V0618,
        "uri": V0618,
        "name": V0618,
        "title": V0618,
        "description": V0618,
        "mimeType": V0618,
        "size": V0618,
        "annotations": V0618,
        "_meta": V0618,
        "icons": V1125,
    },
    "call": {"content": ALWAYS, "isError": ALWAYS, "_meta": ALWAYS, "structuredContent": V0618},
    "message": {"role": ALWAYS, "content": ALWAYS},
    "completion": {"values": ALWAYS, "total": ALWAYS, "hasMore": ALWAYS},
    "initialize": {"protocolVersion": ALWAYS, "capabilities": ALWAYS, "serverInfo": ALWAYS, "instructions": ALWAYS},
}
KINDS = {"tools/list": "tool", "prompts/list": "prompt", "resources/list": "resource"}
BLOCKS = {"text": "text", "image": "image", "audio": "audio", "resource": "embedded", "resource_link": "link"}

CALLS: dict[str, dict[str, Any]] = {
    "initialize": {},
    "ping": {},
    "logging/setLevel": {"level": "info"},
    "tools/list": {},
    "tools/call": {"name": "everything", "arguments": {}},
    "prompts/list": {},
    "prompts/get": {"name": "greet", "arguments": {"name": "Ada"}},
    "resources/list": {},
    "resources/templates/list": {},
    "resources/read": {"uri": "text://one"},
    "completion/complete": {
        "ref": {"type": "ref/prompt", "name": "greet"},
        "argument": {"name": "name", "value": "a"},
        "context": {"arguments": {}},
    },
}


class Point(BaseModel):
    x: int
    y: int


def everything() -> MCPServer:
    """A server that uses every field there is."""
    icons = [Icon("https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")]
    annotations = Annotations(audience=["user"], priority=0.5, last_modified="2026-01-01T00:00:00Z")
    meta: dict[str, object] = {"example.com/a": 1}
    blocks: dict[str, Any] = {"annotations": annotations, "meta": meta}
    server = MCPServer(
        "everything",
        "1.2.3",
        title="Everything",
        description="All of it.",
        instructions="Use it.",
        website_url="https://example.com",
        icons=icons,
        settings=Settings(log_messages="info"),
    )

    @server.tool(
        title="Everything",
        annotations=ToolAnnotations("T", read_only_hint=True, destructive_hint=False, idempotent_hint=True),
        icons=icons,
        meta=meta,
    )
    def everything(a: Annotated[int, Field(description="A number.")] = 1) -> CallToolResult:
        """Return one of each block."""
        return CallToolResult(
            [
                TextContent("text", **blocks),
                ImageContent(b"i", "image/png", **blocks),
                AudioContent(b"a", "audio/wav", **blocks),
                EmbeddedResource(TextResourceContents("text://e", "e", "text/plain", meta), **blocks),
                EmbeddedResource(BlobResourceContents("blob://e", b"e", "x/y", meta), **blocks),
                ResourceLink("text://l", "link", "Link", "A link.", "text/plain", 5, icons=icons, **blocks),
                Image(data=b"i", format="png"),
                Audio(data=b"a", format="wav"),
                "plain",
            ],
            structured_content={"a": 1},
            meta=meta,
        )

    @server.tool()
    def point() -> Point:
        """Return an object."""
        return Point(x=1, y=2)

    @server.tool()
    def points() -> list[Point]:
        """Return a list, whose schema has no object at its root."""
        return [Point(x=1, y=2)]

    @server.tool()
    def number() -> int | None:
        """Return a number."""
        return 5

    @server.tool()
    async def report(ctx: Context[None]) -> str:
        """Report on the way."""
        await ctx.report_progress(1, 2, "half")
        await ctx.info("note", logger_name="me")
        return "done"

    @server.tool()
    async def ask(ctx: Context[None]) -> str:
        """Ask."""
        return (await ctx.elicit("Where?", Point, key="where")).action

    add_resources_and_prompts(server, icons, annotations, meta, blocks)

    @server.completion()
    def complete(ref: Any, argument: Any, context: Any) -> Completion:
        """Complete."""
        return Completion(["Ada"], total=1, has_more=False)

    return server


def add_resources_and_prompts(
    server: MCPServer, icons: list[Icon], annotations: Annotations, meta: dict[str, object], blocks: dict[str, Any]
) -> None:
    @server.resource(
        "text://one", title="One", description="1", mime_type="text/plain", icons=icons, annotations=annotations,
        meta=meta, size=1,
    )  # fmt: skip
    def one() -> str:
        """One."""
        return "1"

    @server.resource("text://many/{n}", title="Many", mime_type="x/y", icons=icons, annotations=annotations, meta=meta)
    def many(n: str) -> bytes:
        """Many."""
        return n.encode()

    @server.prompt(title="Greet", icons=icons, meta=meta)
    def greet(name: Annotated[str, Field(title="Name", description="Whom.")]) -> list[Message]:
        """Greet."""
        link = ResourceLink("text://l", "link", icons=icons, **blocks)
        return [Message(name), Message(AudioContent(b"a", "audio/wav", **blocks), "assistant"), Message(link)]


@pytest.fixture(scope="module")
def door() -> Door:
    return Door(everything().lambda_handler())


def call(door: Door, version: str, method: str, params: dict[str, Any] | None = None) -> Answer:
    params = CALLS[method] if params is None else params
    if version == MODERN:
        return door.modern(method, params, capabilities=FORMS)
    if method == "initialize":
        return door.legacy(method, initialize(version), version=None)
    return door.legacy(method, params, version=version)


def objects(method: str, result: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every object of a result with its kind."""
    match method:
        case "initialize":
            yield "initialize", result
            yield "implementation", result["serverInfo"]
            yield "capabilities", result["capabilities"]
        case "tools/call":
            yield "call", result
            for block in result["content"]:
                yield from content(block)
        case "prompts/get":
            for message in result["messages"]:
                yield "message", message
                yield from content(message["content"])
        case "resources/read":
            yield from (("contents", item) for item in result["contents"])
        case "completion/complete":
            yield "completion", result["completion"]
        case _:
            kind = KINDS.get(method, "template")
            for item in result.get(f"{kind}s", result.get("resourceTemplates", ())):
                yield kind, item
                yield from (("argument", argument) for argument in item.get("arguments", ()))
                if "annotations" in item:
                    yield ("tool annotations" if kind == "tool" else "annotations"), item["annotations"]


def content(block: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield BLOCKS[block["type"]], block
    if "annotations" in block:
        yield "annotations", block["annotations"]
    if "resource" in block:
        yield "contents", block["resource"]


def strange(version: str, method: str, result: Mapping[str, Any]) -> list[str]:
    """Fields that the revision does not define."""
    tables = {**OBJECTS, "annotations": ANNOTATIONS, "icon": ICON}
    return [
        f"{kind}.{name}"
        for kind, value in objects(method, result)
        for name in value
        if tables[kind].get(name, "9999") > version
    ]


@pytest.mark.parametrize("version", LEGACY)
@pytest.mark.parametrize("method", CALLS)
def test_nothing_is_sent_that_the_revision_does_not_define(door: Door, method: str, version: str) -> None:
    answer = call(door, version, method)
    assert answer.status == 200
    assert strange(version, method, answer.result) == []
    for word in ("resultType", "ttlMs", "cacheScope", "$schema", "-3202"):
        assert word not in answer.body.decode()


@pytest.mark.parametrize("method", CALLS)
def test_the_newest_legacy_revision_is_sent_all_there_is(door: Door, method: str) -> None:
    """So that the tests above cannot pass by sending nothing."""
    sent = {f"{kind}.{name}" for kind, value in objects(method, call(door, V1125, method).result) for name in value}
    newest = {"initialize": "implementation", "tools/list": "tool", "prompts/list": "prompt"}
    newest |= {"resources/list": "resource", "resources/templates/list": "template", "tools/call": "link"}
    kind = newest.get(method)
    if kind is not None:
        assert {name.partition(".")[2] for name in sent if name.startswith(f"{kind}.")} == set(OBJECTS[kind])


VALIDATED = (V1125, MODERN)


@pytest.mark.parametrize("version", [*LEGACY, MODERN])
@pytest.mark.parametrize("method", [*CALLS, "server/discover"])
def test_results_are_the_wire_models_of_the_revision(door: Door, method: str, version: str) -> None:
    if (method, version) not in methods.SERVER_RESULTS:
        answer = door.modern(method) if version == MODERN else door.legacy(method, version=version)
        assert answer.error["code"] == -32601
        return
    result = call(door, version, method, None if method in CALLS else {}).result
    dumped = methods.serialize_server_result(method, version, result)
    if version in VALIDATED:
        assert dumped == result  # the models drop what the revision does not know


@pytest.mark.parametrize("version", [*LEGACY, MODERN])
@pytest.mark.parametrize("name", ["everything", "point", "points", "number"])
def test_every_kind_of_tool_result_is_valid(door: Door, name: str, version: str) -> None:
    result = call(door, version, "tools/call", {"name": name, "arguments": {}}).result
    assert result["isError"] is False
    dumped = methods.serialize_server_result("tools/call", version, result)
    if version in VALIDATED:
        assert dumped == result
    assert strange(version, "tools/call", {k: v for k, v in result.items() if k != "resultType"}) == []


def test_a_question_is_the_wire_model_of_its_revision(door: Door) -> None:
    result = call(door, MODERN, "tools/call", {"name": "ask", "arguments": {}}).result
    assert result["resultType"] == "input_required"
    assert methods.serialize_server_result("tools/call", MODERN, result) == result


@pytest.mark.parametrize("version", [*LEGACY, MODERN])
def test_notifications_are_the_wire_models_of_the_revision(door: Door, version: str) -> None:
    params: dict[str, Any] = {"name": "report", "arguments": {}}
    meta: dict[str, Any] = {"progressToken": 1}
    if version == MODERN:
        answer = door.modern("tools/call", params, meta={**meta, "io.modelcontextprotocol/logLevel": "info"})
    else:
        answer = door.legacy("tools/call", {**params, "_meta": meta}, version=version)
    progress, note, _ = answer.stream
    for message in (progress, note):
        methods.parse_server_notification(message["method"], version, message["params"])
    assert ("message" in progress["params"]) is (version > ALWAYS)


# A23, A24
@pytest.mark.parametrize("version", LEGACY)
def test_a_block_that_the_revision_lacks_becomes_text_that_says_what_was_there(door: Door, version: str) -> None:
    blocks = call(door, version, "tools/call").result["content"]
    kinds = [block["type"] for block in blocks]
    audio = "audio" if version >= V0326 else "text"
    link = "resource_link" if version >= V0618 else "text"
    assert kinds == ["text", "image", audio, "resource", "resource", link, "image", audio, "text"]
    if audio == "text":
        assert "audio/wav" in blocks[2]["text"]
    if link == "text":
        assert "text://l" in blocks[5]["text"]


# A26
@pytest.mark.parametrize("version", [*LEGACY, MODERN])
def test_output_schemas_and_structured_content_agree_at_every_revision(door: Door, version: str) -> None:
    tools = {tool["name"]: tool for tool in call(door, version, "tools/list").result["tools"]}
    for name in ("point", "points", "number"):
        result = call(door, version, "tools/call", {"name": name, "arguments": {}}).result
        schema = tools[name].get("outputSchema")
        assert (schema is not None) is ("structuredContent" in result) is (version >= V0618)
        assert result["content"]
        if schema is not None and version != MODERN:
            assert schema["type"] == "object"
            assert isinstance(result["structuredContent"], dict)
            assert set(schema["required"]) <= set(result["structuredContent"])


def test_capabilities_are_what_is_served_and_no_more(door: Door) -> None:
    served: dict[str, Any] = {"tools": {}, "prompts": {}, "resources": {}, "completions": {}, "logging": {}}
    for version in LEGACY[1:]:
        assert call(door, version, "initialize").result["capabilities"] == served
    oldest = {name: value for name, value in served.items() if name != "completions"}
    assert call(door, ALWAYS, "initialize").result["capabilities"] == oldest
    assert Door(MCPServer("none").lambda_handler()).legacy("initialize", initialize(V1125)).result["capabilities"] == {}


def test_shaping_leaves_the_definition_as_it_was() -> None:
    wire = {"name": "t", "inputSchema": {}, "title": "T", "icons": [], "annotations": {"title": "x"}}
    before = {**wire}
    for revision in REVISIONS.values():
        revisions.tool(wire, revision)
    assert wire == before


def test_revisions_order_as_their_dates() -> None:
    assert list(REVISIONS) == sorted(REVISIONS) == [*LEGACY, MODERN]
    assert [name for name, revision in REVISIONS.items() if revision.modern] == [MODERN]
    assert [name for name, revision in REVISIONS.items() if revision.batches] == [V0326]
    assert [name for name, revision in REVISIONS.items() if revision.closes_streams] == [V1125]
    assert revisions.newest_legacy((MODERN,)) is None
