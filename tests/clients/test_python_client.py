"""The official Python client 2.x, in both eras: what a host does with a server that never asks anything."""

import mcp_types as types
import pytest
from mcp import Client, MCPError

from mcp_stateless.testing import Fleet
from mcp_stateless.testing.events import Source
from tests.clients.environments import Log
from tests.clients.python_client import talk, text_of

MODES = {"legacy": "2025-11-25", "auto": "2026-07-28"}
CONNECTING = {"legacy": ["initialize", "notifications/initialized"], "auto": ["server/discover"]}
TOOLS = [
    "measure",
    "shout",
    "fails",
    "forecast",
    "count",
    "asks",
    "asks_from_a_thread",
    "asks_to_open_a_page",
    "asks_twice",
    "asks_in_parallel",
    "asks_many",
    "pays_and_asks",
    "books",
    "samples",
    "lists_roots",
]


@pytest.fixture(params=MODES)
def mode(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_the_client_learns_what_the_server_is(fleet: Fleet, mode: str) -> None:
    async def introduce(client: Client) -> tuple[object, ...]:
        info = client.server_info
        assert info is not None
        capabilities = sorted(client.server_capabilities.model_dump(exclude_none=True))
        return client.protocol_version, info.name, info.version, info.title, client.instructions, capabilities

    capabilities = ["completions", "prompts", "resources", "tools"]
    expected = (MODES[mode], "clients", "1.2.3", "For clients", "Call the tools.", capabilities)
    assert talk(fleet, mode, introduce) == expected


def test_the_client_lists_everything(fleet: Fleet, mode: str) -> None:
    async def browse(client: Client) -> tuple[list[str], ...]:
        return (
            [tool.name for tool in (await client.list_tools()).tools],
            [str(resource.uri) for resource in (await client.list_resources()).resources],
            [template.uri_template for template in (await client.list_resource_templates()).resource_templates],
            [prompt.name for prompt in (await client.list_prompts()).prompts],
        )

    assert talk(fleet, mode, browse) == (
        TOOLS,
        ["notes://today"],
        ["letters://{to}", "cities://{city}"],
        ["review", "paint"],
    )


def test_a_call_gives_structured_content_that_fits_the_schema(fleet: Fleet, mode: str) -> None:
    async def call(client: Client) -> types.CallToolResult:
        await client.list_tools()  # from here on the client holds every result against the tool's output schema
        return await client.call_tool("measure", {"text": "größer als klein"})

    result = talk(fleet, mode, call)
    assert result.structured_content == {"words": 3, "characters": 16}
    assert not result.is_error


def test_a_call_gives_text_alone(fleet: Fleet, mode: str) -> None:
    result = talk(fleet, mode, lambda client: client.call_tool("shout", {"text": "größer"}))
    assert text_of(result) == "GRÖSSER"
    assert result.structured_content is None


def test_a_tool_error_is_a_result_for_the_model(fleet: Fleet, mode: str) -> None:
    result = talk(fleet, mode, lambda client: client.call_tool("fails"))
    assert result.is_error
    assert text_of(result) == "There is nothing to be had"


def test_what_does_not_exist_is_an_error_with_the_code_of_its_era(fleet: Fleet, mode: str) -> None:
    async def look(client: Client) -> list[int]:
        codes = []
        for attempt in (
            lambda: client.call_tool("nothing"),
            lambda: client.read_resource("nothing://here"),
            lambda: client.get_prompt("nothing"),
        ):
            with pytest.raises(MCPError) as caught:
                await attempt()
            codes.append(caught.value.error.code)
        return codes

    missing_resource = types.INVALID_PARAMS if mode == "auto" else -32002
    assert talk(fleet, mode, look) == [types.INVALID_PARAMS, missing_resource, types.INVALID_PARAMS]


@pytest.mark.parametrize("listed", [True, False])
def test_an_argument_that_a_header_repeats_arrives_whether_or_not_the_tools_were_listed(
    fleet: Fleet, log: Log, mode: str, listed: bool
) -> None:
    async def call(client: Client) -> types.CallToolResult:
        if listed:
            await client.list_tools()
        return await client.call_tool("forecast", {"city": "Zürich"})

    assert text_of(talk(fleet, mode, call)) == "Rain in Zürich"
    assert ("mcp-param-city" in log.requests[-1].headers) == (mode == "auto")


def test_the_client_reads_resources(fleet: Fleet, mode: str) -> None:
    async def read(client: Client) -> list[str]:
        results = [await client.read_resource(uri) for uri in ("notes://today", "cities://Oslo")]
        contents = [result.contents[0] for result in results]
        return [item.text for item in contents if isinstance(item, types.TextResourceContents)]

    assert talk(fleet, mode, read) == ["Write tests", "Oslo is a city"]


def test_the_client_gets_a_prompt(fleet: Fleet, mode: str) -> None:
    result = talk(fleet, mode, lambda client: client.get_prompt("review", {"text": "this"}))
    [message] = result.messages
    assert message.role == "user"
    assert message.content == types.TextContent(type="text", text="Please review: this")


@pytest.mark.parametrize(
    ("reference", "argument"),
    [
        (types.PromptReference(type="ref/prompt", name="review"), "text"),
        (types.ResourceTemplateReference(type="ref/resource", uri="cities://{city}"), "city"),
    ],
)
def test_the_client_completes_an_argument(
    fleet: Fleet, mode: str, reference: types.PromptReference | types.ResourceTemplateReference, argument: str
) -> None:
    result = talk(fleet, mode, lambda client: client.complete(reference, {"name": argument, "value": "L"}))
    assert result.completion.values == ["Leipzig", "Lisbon", "London"]


def test_progress_reaches_the_callback_in_order_and_before_the_result(fleet: Fleet, mode: str) -> None:
    seen: list[tuple[float, float | None, str | None]] = []

    async def progressed(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async def call(client: Client) -> types.CallToolResult:
        return await client.call_tool("count", {"to": 3}, progress_callback=progressed)

    assert text_of(talk(fleet, mode, call)) == "3"
    assert seen == [(1, 3, "at 1"), (2, 3, "at 2"), (3, 3, "at 3")]


def test_each_request_finds_another_environment_and_there_is_no_session_to_end(
    fleet: Fleet, log: Log, mode: str
) -> None:
    async def call_often(client: Client) -> list[types.CallToolResult]:
        return [await client.call_tool("shout", {"text": str(number)}) for number in range(8)]

    assert [text_of(result) for result in talk(fleet, mode, call_often)] == list("01234567")
    calls = [request for request in log.requests if request.method == "tools/call"]
    assert {request.environment for request in calls} == {0, 1, 2, 3}
    posts = [str(request) for request in log.requests if request.verb == "POST"]
    # Before it takes the first result, the client fetches the schema that it has to fit.
    assert posts == [*CONNECTING[mode], "tools/call", "tools/list", *["tools/call"] * 7]
    # A legacy client tries once whether there is a stream to listen to; nobody has a session to delete.
    others = [str(request) for request in log.requests if request.verb != "POST"]
    assert others in ([], ["GET 405"] if mode == "legacy" else [])
    assert not [request for request in log.requests if "mcp-session-id" in request.headers]


@pytest.mark.parametrize("source", ["rest_api", "function_url", "alb"])
def test_every_event_source_carries_the_client(fleet: Fleet, mode: str, source: Source) -> None:
    async def visit(client: Client) -> tuple[int, str, object]:
        tools = await client.list_tools()
        await client.read_resource("cities://S%C3%A3o%20Paulo")
        result = await client.call_tool("measure", {"text": "größer 😀"})
        return len(tools.tools), client.protocol_version, result.structured_content

    found = talk(fleet, mode, visit, source=source)
    assert found == (len(TOOLS), MODES[mode], {"words": 2, "characters": 8})
