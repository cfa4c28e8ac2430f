"""What calls answer: results, errors and what they hide, pages, and what a call cannot do without a connection."""

import subprocess
import sys
import textwrap
from typing import Annotated, Any

import pytest
from pydantic import Field

from mcp_stateless import Context, MCPServer, Settings, ToolError
from tests.http.door import LEGACY, MODERN, Answer, Door, Weight

Small = Annotated[int, Field(le=100)]

EVERY_ERA = pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", MODERN])


def ask(door: Door, version: str, method: str, params: dict[str, Any] | None = None, **options: Any) -> Answer:
    if version == MODERN:
        return door.modern(method, params, **options)
    return door.legacy(method, params, version=version, **options)


# B104
@EVERY_ERA
@pytest.mark.parametrize("name", ["nope", "", "ADD", "add ", "__class__"])
def test_an_unknown_tool_is_a_protocol_error(weight: Weight, version: str, name: str) -> None:
    answer = ask(Door(weight(sample())), version, "tools/call", {"name": name, "arguments": {}})
    assert answer.status == 200
    assert answer.error == {"code": -32602, "message": "Unknown tool"}


# B105
@EVERY_ERA
@pytest.mark.parametrize(
    ("arguments", "field"),
    [({"a": 1}, "b"), ({"a": 1, "b": 2, "c": 3}, "c"), ({"a": 1, "b": "x"}, "b"), ({"a": 1, "b": 1000}, "b")],
)
def test_arguments_that_do_not_fit_are_told_to_the_model(
    weight: Weight, version: str, arguments: dict[str, Any], field: str
) -> None:
    answer = ask(Door(weight(sample())), version, "tools/call", {"name": "add", "arguments": arguments})
    assert answer.result["isError"] is True
    assert field in answer.text
    assert len(answer.text) < 500
    for internal in ("pydantic", "http", "Arguments", "Traceback"):
        assert internal not in answer.text


# B106
@EVERY_ERA
def test_an_unexpected_failure_says_nothing_of_its_reason(
    weight: Weight, version: str, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ask(Door(weight(sample())), version, "tools/call", {"name": "leak", "arguments": {}})
    assert (answer.status, answer.result["isError"]) == (200, True)
    for secret in (b"postgres", b"pw", b"ValueError", b"Traceback"):
        assert secret not in answer.body
    reference = answer.text.rpartition(" ")[2]
    record = next(record for record in caplog.records if record.exc_info)
    assert reference in record.getMessage()
    assert "postgres://u:pw@db.internal" in caplog.text


@EVERY_ERA
def test_a_tool_error_is_told_as_it_is(weight: Weight, version: str) -> None:
    answer = ask(Door(weight(sample())), version, "tools/call", {"name": "order", "arguments": {}})
    assert answer.result["isError"] is True
    assert answer.text == "no such order: Ünïcödé"
    assert "structuredContent" not in answer.result


@EVERY_ERA
@pytest.mark.parametrize(
    ("method", "params"), [("prompts/get", {"name": "broken"}), ("resources/read", {"uri": "broken://it"})]
)
def test_failures_outside_tools_are_protocol_errors_without_a_reason(
    weight: Weight, version: str, method: str, params: dict[str, Any]
) -> None:
    answer = ask(Door(weight(sample())), version, method, params)
    assert (answer.status, answer.error["code"]) == (200, -32603)
    assert b"postgres" not in answer.body


# B107, B108
@pytest.mark.parametrize("version", [*LEGACY, MODERN])
@pytest.mark.parametrize(("count", "size"), [(1, 3), (2, 3), (3, 3), (4, 3), (7, 3), (6, 3), (5, 1), (60, 0)])
@pytest.mark.parametrize("kind", ["tools", "prompts", "resources", "resourceTemplates"])
def test_a_list_ends_and_has_everything_once_and_in_order(version: str, kind: str, count: int, size: int) -> None:
    door = Door(listing(count, size).lambda_handler())
    method = {"resourceTemplates": "resources/templates/list"}.get(kind, f"{kind}/list")
    names: list[str] = []
    params: dict[str, Any] = {}
    for _ in range(count + 1):
        result = ask(door, version, method, params).result
        names += [item["name"] for item in result[kind]]
        assert not size or len(result[kind]) <= size
        if "nextCursor" not in result:
            break
        assert result["nextCursor"]
        params = {"cursor": result["nextCursor"]}
    else:
        pytest.fail("the list does not end")
    assert names == [f"item{n}" for n in range(count)]


def test_without_definitions_a_family_is_not_there(weight: Weight) -> None:
    door = Door(weight(MCPServer("empty")))
    for method in ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "completion/complete"):
        legacy, modern = door.legacy(method), door.modern(method)
        assert (legacy.status, legacy.error["code"]) == (200, -32601)
        assert (modern.status, modern.error["code"]) == (404, -32601)


@pytest.mark.parametrize("cursor", ["bogus", 5, "", None, [], {}, "dG9vbDpub3BlCg==", "日本", "dG9vbDppdGVtMA", " "])
@pytest.mark.parametrize("version", ["2025-11-25", MODERN])
def test_a_cursor_that_was_never_given_is_refused(weight: Weight, version: str, cursor: object) -> None:
    answer = ask(Door(weight(listing(5, 2))), version, "tools/list", {"cursor": cursor})
    assert (answer.status, answer.error) == (200, {"code": -32602, "message": "Invalid cursor"})


def test_a_cursor_of_another_list_or_past_the_end_is_refused(weight: Weight) -> None:
    door = Door(weight(listing(5, 2)))
    cursor = door.legacy("tools/list").result["nextCursor"]
    assert door.legacy("prompts/list", {"cursor": cursor}).error["code"] == -32602
    longer = Door(weight(listing(9, 5))).legacy("tools/list").result["nextCursor"]
    assert door.legacy("tools/list", {"cursor": longer}).error["code"] == -32602


def test_a_cursor_works_in_every_environment_and_after_a_deploy(weight: Weight) -> None:
    cursor = Door(weight(listing(5, 2))).legacy("tools/list").result["nextCursor"]
    result = Door(weight(listing(6, 3))).legacy("tools/list", {"cursor": cursor}).result
    assert [tool["name"] for tool in result["tools"]] == ["item2", "item3", "item4"]


def test_a_cursor_of_another_process_works_here() -> None:
    code = """
        from tests.http.test_results import listing
        from tests.http.door import Door
        print(Door(listing(5, 2).lambda_handler()).legacy("tools/list").result["nextCursor"])
    """
    ran = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True)
    result = Door(listing(5, 2).lambda_handler()).legacy("tools/list", {"cursor": ran.stdout.strip()}).result
    assert [tool["name"] for tool in result["tools"]] == ["item2", "item3"]


# B110
@pytest.mark.parametrize(
    ("version", "code"),
    [("2024-11-05", -32002), ("2025-03-26", -32002), ("2025-06-18", -32002), ("2025-11-25", -32002), (MODERN, -32602)],
)
@pytest.mark.parametrize("uri", ["none://such", "item://", "", "text://item99/../x"])
def test_a_missing_resource_has_the_code_of_its_era(weight: Weight, version: str, code: int, uri: str) -> None:
    answer = ask(Door(weight(listing(1, 0))), version, "resources/read", {"uri": uri})
    assert answer.status == 200
    assert answer.error == {"code": code, "message": "Resource not found", "data": {"uri": uri}}


@pytest.mark.parametrize("uri", [None, 5, ["a"]])
def test_a_uri_that_is_no_text_is_invalid_params(weight: Weight, uri: object) -> None:
    door = Door(weight(listing(1, 0)))
    assert door.legacy("resources/read", {"uri": uri}).error["code"] == -32602
    assert door.modern("resources/read", {"uri": uri}).error["code"] == -32602


# B111
@pytest.mark.parametrize("version", [None, *LEGACY])
@pytest.mark.parametrize("kind", ["elicit", "elicit_url", "sample", "list_roots"])
@pytest.mark.parametrize("blocking", [False, True])
def test_asking_in_a_legacy_call_is_a_clear_error_at_once(
    weight: Weight, version: str | None, kind: str, blocking: bool
) -> None:
    name = f"{kind}_blocking" if blocking else kind
    answer = Door(weight(asking())).call(name, {}, version=version)
    assert (answer.status, answer.result["isError"]) == (200, True)
    assert "cannot ask" in answer.text
    assert MODERN in answer.text


def test_a_tool_can_know_beforehand_that_it_cannot_ask(weight: Weight) -> None:
    server = MCPServer("sample")

    @server.tool()
    def able(ctx: Context[None]) -> list[bool]:
        """Tell what may be asked."""
        return [ctx.can_elicit, ctx.can_elicit_url, ctx.can_sample, ctx.can_list_roots]

    door = Door(weight(server))
    assert door.call("able", {}).result["structuredContent"] == {"result": [False] * 4}
    params = {"name": "able", "arguments": {}}
    some = door.modern("tools/call", params, capabilities={"elicitation": {}, "roots": {}})
    assert some.result["structuredContent"] == [True, False, False, True]
    url = door.modern("tools/call", params, capabilities={"elicitation": {"url": {}}, "sampling": {}})
    assert url.result["structuredContent"] == [False, True, True, False]


# B112
@EVERY_ERA
@pytest.mark.parametrize("token", [None, 0, "t"])
def test_progress_and_logs_never_hurt_a_plain_json_call(weight: Weight, version: str, token: object) -> None:
    params: dict[str, Any] = {"name": "talk", "arguments": {}}
    meta = {} if token is None else {"progressToken": token}
    headers = {"accept": "application/json"}
    door = Door(weight(sample()))
    if version == MODERN:
        answer = door.modern("tools/call", params, meta=meta, headers=headers)
    else:
        answer = door.legacy("tools/call", {**params, "_meta": meta}, version=version, headers=headers)
    assert answer.text == "done"


@pytest.mark.parametrize("value", ["nan", "inf", "-inf"])
def test_progress_that_is_no_number_is_the_tools_own_fault(weight: Weight, value: str) -> None:
    server = MCPServer("sample")

    @server.tool()
    async def odd(ctx: Context[None]) -> str:
        """Report nonsense."""
        try:
            await ctx.report_progress(float(value))
        except ValueError as error:
            return str(error)
        return "reported"

    params = {"name": "odd", "arguments": {}, "_meta": {"progressToken": 1}}
    assert Door(weight(server)).legacy("tools/call", params).text == "progress and total must be finite numbers"


def sample() -> MCPServer:
    server = MCPServer("sample")

    @server.tool()
    def add(a: int, b: Small) -> int:
        """Add two numbers."""
        return a + b

    @server.tool()
    def leak() -> str:
        """Fail."""
        raise ValueError("postgres://u:pw@db.internal")

    @server.tool()
    def order() -> str:
        """Fail on purpose."""
        raise ToolError("no such order: Ünïcödé")

    @server.tool()
    async def talk(ctx: Context[None]) -> str:
        """Talk on the way."""
        await ctx.report_progress(0)
        await ctx.debug({"a": 1})
        await ctx.info("info")
        await ctx.warning(None)
        await ctx.error(["e"])
        await ctx.log("notice", 5, logger_name="me")
        await ctx.report_progress(1, total=1, message="done")
        return "done"

    @server.prompt()
    def broken() -> str:
        """Fail."""
        raise ValueError("postgres://u:pw@db.internal")

    @server.resource("broken://it")
    def broken_resource() -> str:
        """Fail."""
        raise ValueError("postgres://u:pw@db.internal")

    return server


def listing(count: int, page_size: int) -> MCPServer:
    server = MCPServer("sample", settings=Settings(page_size=page_size))

    def text(n: str = "") -> str:
        return "text"

    def plain() -> str:
        return "text"

    for n in range(count):
        server.tool(f"item{n}", description="Item.")(plain)
        server.prompt(f"item{n}", description="Item.")(plain)
        server.resource(f"item://{n}", name=f"item{n}")(plain)
        server.resource(f"text://item{n}/{{n}}", name=f"item{n}")(text)
    return server


def asking() -> MCPServer:
    server = MCPServer("sample")
    form = {"type": "object", "properties": {"name": {"type": "string"}}}

    @server.tool()
    async def elicit(ctx: Context[None]) -> str:
        """Ask."""
        return (await ctx.elicit("Who?", form)).action

    @server.tool()
    async def elicit_url(ctx: Context[None]) -> str:
        """Ask."""
        return (await ctx.elicit_url("Open", "https://example.com")).action

    @server.tool()
    async def sample(ctx: Context[None]) -> str:
        """Ask."""
        return (await ctx.sample("Hello")).text

    @server.tool()
    async def list_roots(ctx: Context[None]) -> str:
        """Ask."""
        return str(await ctx.list_roots())

    @server.tool()
    def elicit_blocking(ctx: Context[None]) -> str:
        """Ask."""
        return ctx.blocking.elicit("Who?", form).action

    @server.tool()
    def elicit_url_blocking(ctx: Context[None]) -> str:
        """Ask."""
        return ctx.blocking.elicit_url("Open", "https://example.com").action

    @server.tool()
    def sample_blocking(ctx: Context[None]) -> str:
        """Ask."""
        return ctx.blocking.sample("Hello").text

    @server.tool()
    def list_roots_blocking(ctx: Context[None]) -> str:
        """Ask."""
        return str(ctx.blocking.list_roots())

    return server
