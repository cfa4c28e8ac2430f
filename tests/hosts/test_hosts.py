"""Small inputs that imitate real hosts with habits of their own; the table of hosts is in the documentation.

What concerns tools that outlast a request belongs to the tests of long calls.
"""

import asyncio
from typing import Any

import pytest
from pydantic import BaseModel

from mcp_stateless import Context, MCPServer
from tests.http.door import META_CAPABILITIES, META_VERSION, MODERN, Door, Weight, asgi, initialize, request

FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


class Name(BaseModel):
    name: str


class Host:
    """A server with a plain tool and one that asks, and whether any code of its author ran."""

    def __init__(self, weight: Weight, **door: Any) -> None:
        server = MCPServer("sample", "1")
        self.server = server
        self.starts = 0

        def nothing() -> None:
            return None

        @server.on_start
        def start() -> None:
            self.starts += 1

        for n in range(40):
            server.tool(f"tool_{n}", description="One of many.")(nothing)

        @server.tool()
        async def add(a: int, b: int, ctx: Context[None]) -> int:
            """Add two numbers."""
            await ctx.report_progress(1)
            return a + b

        @server.tool()
        async def ask(ctx: Context[None]) -> str:
            """Ask for a name."""
            if not ctx.can_elicit:
                return "pass the name as the argument `name`"
            answer = await ctx.elicit("Name?", Name, key="k")
            return f"the user said {answer.action}"

        @server.tool()
        async def insist(ctx: Context[None]) -> str:
            """Ask without looking first."""
            return (await ctx.elicit("Name?", Name, key="k")).action

        self.door = Door(weight(server), **door)


def meta(capabilities: dict[str, Any]) -> dict[str, Any]:
    info = {"name": "t", "version": "1"}
    return {META_VERSION: MODERN, META_CAPABILITIES: capabilities, "io.modelcontextprotocol/clientInfo": info}


# T1: claude.ai, VS Code, Gemini CLI
@pytest.mark.parametrize(
    ("asked", "answered"),
    [("2025-11-25", "2025-11-25"), ("2025-06-18", "2025-06-18"), ("2099-01-01", "2025-11-25")],
)
def test_a_host_that_never_sends_the_version_header(weight: Weight, asked: str, answered: str) -> None:
    door = Host(weight).door
    headers = {"sec-fetch-mode": "cors"}
    params = initialize(asked) | {"clientInfo": {"name": "Anthropic/ClaudeAI", "version": "1.0.0"}}
    answer = door.post({"method": "initialize", "params": params, "jsonrpc": "2.0", "id": 0}, headers)
    assert (answer.status, answer.json["id"]) == (200, 0)
    assert answer.headers["content-type"] == "application/json"
    assert answer.result["protocolVersion"] == answered
    assert "mcp-session-id" not in answer.headers

    accepted = door.post(INITIALIZED, headers)
    assert (accepted.status, accepted.body) == (202, b"")
    assert "content-type" not in accepted.headers

    listening = door.send("GET", "/mcp", {"accept": "text/event-stream"})
    assert (listening.status, listening.body) == (405, b"")
    assert "POST" in listening.headers["allow"]

    listed = door.post(request("tools/list", None, 1), headers)
    assert len(listed.result["tools"]) == 43
    assert "nextCursor" not in listed.result
    call = request("tools/call", {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": {"progressToken": 1}}, 2)
    called = door.post(call, headers)
    assert (called.status, called.headers["content-type"]) == (200, "text/event-stream")
    assert called.stream[-1]["id"] == 2
    assert b"\nid:" not in b"\n" + called.body
    assert b"retry:" not in called.body


# T2: Copilot CLI
@pytest.mark.parametrize("kind", ["endpoint alone", "FastAPI app"])
def test_a_probe_given_up_during_a_cold_start_leaves_nothing_behind(kind: str) -> None:
    server = MCPServer("sample", "1")
    release = asyncio.Event()
    starts = []

    @server.on_start
    async def start() -> None:
        starts.append(1)
        await release.wait()

    declared: dict[str, Any] = {"sampling": {}, "elicitation": {"form": {}, "url": {}}}
    probe = request("server/discover", {"_meta": meta(declared)}, 0)
    headers = {
        "accept": "text/event-stream, application/json",
        "mcp-protocol-version": MODERN,
        "mcp-method": "server/discover",
    }
    app = server.endpoint() if kind == "endpoint alone" else server.app()

    async def give_up() -> None:
        gone = asyncio.ensure_future(asgi(app, probe, headers))
        while not starts:
            await asyncio.sleep(0)
        gone.cancel()
        overlapping = asyncio.ensure_future(asgi(app, request("initialize", initialize("2025-11-25"), 1)))
        await asyncio.wait({gone}, timeout=5)
        assert gone.cancelled()
        release.set()
        assert (await overlapping).result["protocolVersion"] == "2025-11-25"
        assert (await asgi(app, probe, headers)).result["supportedVersions"] == [MODERN]

    with asyncio.Runner() as runner:
        runner.run(give_up())
    assert len(starts) == 1


# T3: Claude Code
def test_a_probe_with_a_text_for_an_id(weight: Weight) -> None:
    declared = {"roots": {"listChanged": True}, "elicitation": {"form": {}, "url": {}}}
    probe = request("server/discover", {"_meta": meta(declared)}, "server-discover-probe-1")
    answer = Host(weight).door.post(probe, {"mcp-protocol-version": MODERN, "mcp-method": "server/discover"})
    assert (answer.status, answer.json["id"]) == (200, "server-discover-probe-1")
    assert {"resultType", "ttlMs", "cacheScope"} <= set(answer.result)
    assert MODERN in answer.result["supportedVersions"]


def test_extra_keys_in_meta_do_not_matter(weight: Weight) -> None:
    extra = {"claudecode/toolUseId": "toolu_1", "progressToken": 1}
    params = {"name": "add", "arguments": {"a": 1, "b": 2}}
    answer = Host(weight).door.modern("tools/call", params, capabilities=FORMS, meta=extra)
    progress, response = answer.stream
    assert progress["params"]["progressToken"] == 1
    assert response["result"]["content"][0]["text"] == "3"


# T4: headless hosts, and clients that cannot ask
@pytest.mark.parametrize("action", ["cancel", "decline"])
@pytest.mark.parametrize("name", ["ask", "insist"])
def test_a_host_that_answers_every_question_with_no(weight: Weight, name: str, action: str) -> None:
    door = Host(weight).door
    params: dict[str, Any] = {"name": name, "arguments": {}}
    asked = door.modern("tools/call", params, capabilities=FORMS)
    assert set(asked.result["inputRequests"]) == {"k"}
    retry = {**params, "requestState": asked.result["requestState"], "inputResponses": {"k": {"action": action}}}
    answer = door.modern("tools/call", retry, capabilities=FORMS, request_id=2)
    assert answer.result["resultType"] == "complete"
    assert action in answer.text


def test_a_host_that_cannot_be_asked_is_told_what_to_pass_instead(weight: Weight) -> None:
    door = Host(weight).door
    for answer in (
        door.modern("tools/call", {"name": "ask", "arguments": {}}, capabilities={}),
        door.call("ask"),
    ):
        assert answer.result.get("resultType", "complete") == "complete"
        assert "argument `name`" in answer.text
    assert door.modern("tools/call", {"name": "insist", "arguments": {}}, capabilities={}).error["code"] == -32021


# T6: mcp-remote
WELL_KNOWN = [
    "/.well-known/oauth-protected-resource/mcp",
    "/.well-known/oauth-protected-resource",
    "/.well-known/oauth-authorization-server",
    "/.well-known/oauth-authorization-server/mcp",
    "/.well-known/openid-configuration",
    "/.well-known/openid-configuration/mcp",
    "/mcp/.well-known/openid-configuration",
    "/mcp/.well-known/oauth-protected-resource",
    "/register",
    "/sse",
]


@pytest.mark.parametrize("source", ["http_api", "rest_api", "function_url", "alb"])
def test_a_proxy_that_looks_everywhere_first(weight: Weight, source: str) -> None:
    host = Host(weight, source=source)
    door = host.door
    assert door.send("GET", "/mcp", {"accept": "application/json, text/event-stream"}).status == 405
    for path in WELL_KNOWN:
        answer = door.send("GET", path, {"accept": "application/json"})
        assert answer.status in (200, 404), path
        assert "location" not in answer.headers
    assert host.starts == 0
    client = {"clientInfo": {"name": "mcp-remote-fallback-test", "version": "0"}}
    for version in ("2025-11-25", "2025-06-18"):
        message = request("initialize", initialize(version) | client, 0)
        answer = door.post(message, {"mcp-method": "initialize", "mcp-name": "odd"})
        assert (answer.status, answer.result["protocolVersion"]) == (200, version)


# T9: Java, AgentCore
@pytest.mark.parametrize("version", ["2025-11-25", "2025-06-18"])
def test_a_strict_reader_of_event_streams(weight: Weight, version: str) -> None:
    door = Host(weight).door
    headers = {
        "mcp-protocol-version": version,
        "content-type": "application/json; charset=utf-8",
        "user-agent": "Java-http-client/21",
    }
    answer = door.post(request("initialize", initialize(version)), headers)
    assert (answer.status, answer.result["protocolVersion"]) == (200, version)
    assert door.send("GET", "/mcp", {"accept": "text/event-stream", **headers}).status == 405
    params = {"name": "add", "arguments": {"a": 1, "b": 2}, "_meta": {"progressToken": "p"}}
    called = door.post(request("tools/call", params), headers)
    fields = {line.partition(":")[0] for line in called.body.decode().split("\n") if line}
    assert fields == {"data"}


# LangChain: four posts a call, many at once, with equal ids
def test_many_short_sessions_at_once_with_equal_ids() -> None:
    app = Host(lambda server: server.lambda_handler()).server.endpoint()

    async def session(n: int) -> int:
        await asgi(app, request("initialize", initialize("2025-11-25"), 0))
        assert (await asgi(app, INITIALIZED)).status == 202
        call = request("tools/call", {"name": "add", "arguments": {"a": n, "b": 0}}, 1)
        called, listed = await asyncio.gather(asgi(app, call), asgi(app, request("tools/list", None, 2)))
        assert (called.json["id"], listed.json["id"]) == (1, 2)
        return int(called.text)

    async def main() -> list[int]:
        return await asyncio.gather(*(session(n) for n in range(20)))

    with asyncio.Runner() as runner:
        assert runner.run(main()) == list(range(20))
