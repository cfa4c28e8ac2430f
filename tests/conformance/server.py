"""The server that the official conformance suite asks for, written on the public API alone.

Names, arguments and texts are the suite's. The first tool takes no arguments: one scenario calls whatever comes first.
"""

import asyncio
import base64
import os
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_stateless import (
    Audio,
    Completion,
    Context,
    EmbeddedResource,
    Image,
    ImageContent,
    MCPServer,
    Message,
    Settings,
    TextContent,
    TextResourceContents,
    ToolError,
    UserMessage,
)
from mcp_stateless.errors import InternalError

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
WAV = base64.b64decode("UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAIA+AAACABAAZGF0YQAAAAA=")

DEPLOYED = ("MCP_POLLING", "MCP_CALL_TABLE", "MCP_WORKER_FUNCTION")

settings = {name: os.environ[name] for name in DEPLOYED if name in os.environ} | {
    "MCP_LOG_MESSAGES": "debug",
    "MCP_CLIENT_TOKEN": "always",
    # The suite polls once, at once, and wants the result then.
    "MCP_HOLD_SECONDS": "5",
    "MCP_SIGNING_KEYS": "a key of the conformance server that all its environments share",
}

server = MCPServer("conformance", version="1.0.0", settings=Settings.from_environment(settings))


@server.tool()
def test_simple_text() -> TextContent:
    """Return a text."""
    return TextContent("This is a simple text response for testing.")


@server.tool()
def test_image_content() -> Image:
    """Return an image."""
    return Image(data=PNG, format="png")


@server.tool()
def test_audio_content() -> Audio:
    """Return a sound."""
    return Audio(data=WAV, format="wav")


@server.tool()
def test_embedded_resource() -> EmbeddedResource:
    """Return a resource inside the result."""
    return EmbeddedResource(
        TextResourceContents("test://embedded-resource", "This is an embedded resource content.", "text/plain")
    )


@server.tool()
def test_multiple_content_types() -> list[TextContent | ImageContent | EmbeddedResource]:
    """Return a text, an image and a resource."""
    return [
        TextContent("Multiple content types test:"),
        Image(data=PNG, format="png").to_image_content(),
        EmbeddedResource(TextResourceContents("test://mixed-content-resource", '{"test":"data"}', "application/json")),
    ]


@server.tool()
def test_error_handling() -> str:
    """Fail on purpose."""
    raise ToolError("This tool intentionally returns an error for testing")


@server.tool()
async def test_tool_with_logging(ctx: Context) -> str:
    """Send three log messages."""
    for text in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(text)
    return "Tool with logging executed successfully"


@server.tool()
async def test_tool_with_progress(ctx: Context) -> str:
    """Report progress three times."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100, f"Completed step {progress} of 100")
    return "Tool with progress executed successfully"


@server.tool()
async def test_logging_tool(ctx: Context) -> str:
    """Send a log message, which only clients get that ask for a level."""
    await ctx.info("a log message")
    return "logged"


@server.tool(
    input_schema={
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {
            "address": {
                "$anchor": "addressDef",
                "type": "object",
                "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
            }
        },
        "properties": {
            "name": {"type": "string"},
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
            "phone": {"type": "string"},
            "email": {"type": "string"},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
)
def json_schema_2020_12_tool() -> str:
    """Show a schema that uses what JSON Schema 2020-12 has."""
    return "schema"


@server.tool()
def test_x_mcp_header(region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})]) -> str:
    """Take an argument that a header repeats."""
    return region


class UserName(BaseModel):
    name: str


class Confirmation(BaseModel):
    ok: bool


class Color(BaseModel):
    color: str


class Deletion(BaseModel):
    confirm: bool


class Topic(BaseModel):
    context: str


class Account(BaseModel):
    username: str
    email: str


class Defaults(BaseModel):
    name: str = "John Doe"
    age: int = 30
    score: float = 95.5
    status: Literal["active", "inactive", "pending"] = "active"
    verified: bool = True


@server.tool()
async def test_sampling(prompt: str, ctx: Context) -> str:
    """Ask the client's model."""
    return f"LLM response: {(await ctx.sample(prompt, max_tokens=100)).text}"


@server.tool()
async def test_elicitation(message: str, ctx: Context) -> str:
    """Ask the user for an account."""
    return f"User response: {await ctx.elicit(message, Account)}"


@server.tool()
async def test_elicitation_sep1034_defaults(ctx: Context) -> str:
    """Ask with a default in every field."""
    return f"Elicitation completed: {await ctx.elicit('Please review the defaults', Defaults)}"


TITLED = [{"const": "value1", "title": "First"}, {"const": "value2", "title": "Second"}]
ENUMS = {
    "type": "object",
    "properties": {
        "untitledSingle": {"type": "string", "enum": ["option1", "option2", "option3"]},
        "titledSingle": {"type": "string", "oneOf": TITLED},
        "legacyEnum": {"type": "string", "enum": ["opt1", "opt2"], "enumNames": ["Option One", "Option Two"]},
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": ["option1", "option2"]}},
        "titledMulti": {"type": "array", "items": {"anyOf": TITLED}},
    },
}


@server.tool()
async def test_elicitation_sep1330_enums(ctx: Context) -> str:
    """Ask with every kind of choice."""
    return f"Elicitation completed: {await ctx.elicit('Please choose', ENUMS)}"


@server.tool()
async def test_missing_capability(ctx: Context) -> str:
    """Need a capability that the client may not have."""
    return (await ctx.sample("Say hello")).text


@server.tool()
async def test_streaming_elicitation(ctx: Context) -> str:
    """Ask the user, which is no request on a stream any more."""
    return str(await ctx.elicit("What is your name?", UserName, key="user_name"))


@server.tool()
async def test_input_required_result_elicitation(ctx: Context) -> str:
    """Ask the user for a name."""
    answer = await ctx.elicit("What is your name?", UserName, key="user_name")
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"The user answered {answer.action}"


@server.tool()
async def test_input_required_result_sampling(ctx: Context) -> str:
    """Ask the client's model for a capital."""
    return (await ctx.sample("What is the capital of France?", key="capital_question")).text


@server.tool()
async def test_input_required_result_list_roots(ctx: Context) -> str:
    """Ask for the client's roots."""
    return f"{len(await ctx.list_roots(key='client_roots'))} roots"


@server.tool()
async def test_input_required_result_request_state(ctx: Context) -> str:
    """Ask for a confirmation, with a state."""
    await ctx.elicit("Please confirm", Confirmation, key="confirm")
    return "state-ok"


@server.tool()
async def test_input_required_result_multiple_inputs(ctx: Context) -> str:
    """Ask three things at once."""
    name, capital, roots = await asyncio.gather(
        ctx.elicit("What is your name?", UserName, key="user_name"),
        ctx.sample("What is the capital of France?", key="capital_question"),
        ctx.list_roots(key="client_roots"),
    )
    return f"{name.action}, {capital.text}, {len(roots)} roots"


@server.tool()
async def test_input_required_result_multi_round(ctx: Context) -> str:
    """Ask twice, one after the other."""
    first = await ctx.elicit("Step 1: what is your name?", UserName, key="step1")
    second = await ctx.elicit("Step 2: what is your favourite colour?", Color, key="step2")
    return f"{first.action}, {second.action}"


@server.tool()
async def test_input_required_result_tampered_state(ctx: Context) -> str:
    """Ask with a state that must come back unharmed."""
    await ctx.elicit("Please confirm", Confirmation, key="confirm")
    return "complete"


@server.tool()
async def test_input_required_result_capabilities(ctx: Context) -> str:
    """Ask only what the client can answer."""
    if ctx.can_elicit:
        return str(await ctx.elicit("What is your name?", UserName, key="user_name"))
    return (await ctx.sample("Invent a name", key="invented_name")).text


@server.tool(long_running=True)
async def test_reconnection() -> str:
    """Take longer than the stream that starts it."""
    await asyncio.sleep(0.1)
    return "Reconnection test completed"


@server.tool()
def greet(name: str) -> str:
    """Greet, which is never a task."""
    return f"Hello, {name}!"


@server.tool(long_running="optional")
async def slow_compute(seconds: float, label: str = "") -> str:
    """Take a while."""
    await asyncio.sleep(seconds)
    return f"{label} took {seconds} s"


@server.tool(long_running="task")
async def failing_job() -> str:
    """Fail as a tool does."""
    raise ToolError("This job fails on purpose")


@server.tool(long_running="optional")
async def protocol_error_job() -> str:
    """Fail as a request does."""
    raise InternalError("This job fails with a protocol error")


@server.tool(long_running="optional")
async def confirm_delete(filename: str, ctx: Context) -> str:
    """Ask once, as a task."""
    answer = await ctx.elicit(f"Delete {filename}?", Deletion, key="confirm")
    return f"{filename}: {answer.action}"


@server.tool(long_running="optional")
async def multi_input(ctx: Context) -> str:
    """Ask two things at once, as a task."""
    name, other_name = await asyncio.gather(
        ctx.elicit("What is your name?", UserName, key="name"),
        ctx.elicit("What is your other name?", UserName, key="other_name"),
    )
    return f"{name.action}, {other_name.action}"


@server.tool(long_running="task")
async def test_tool_with_task(ctx: Context) -> str:
    """Ask first, in the request, and become a task then."""
    answer = await ctx.elicit("What is your name?", UserName, key="user_name")
    await ctx.detach()
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else "Hello!"


@server.resource("test://static-text", mime_type="text/plain")
def static_text() -> str:
    """A text that never changes."""
    return "This is the content of the static text resource."


@server.resource("test://static-binary", mime_type="image/png")
def static_binary() -> bytes:
    """An image that never changes."""
    return PNG


@server.resource("test://watched-resource", mime_type="text/plain")
def watched_resource() -> str:
    """A text that could change."""
    return "Watched resource content"


class TemplateData(BaseModel):
    id: str
    templateTest: bool
    data: str


@server.resource("test://template/{id}/data", mime_type="application/json")
def template_data(id: str) -> TemplateData:
    """One record."""
    return TemplateData(id=id, templateTest=True, data=f"Data for ID: {id}")


@server.prompt()
def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


@server.prompt()
def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with two arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


@server.prompt()
def test_prompt_with_embedded_resource(resourceUri: str) -> list[Message]:
    """A prompt with a resource inside."""
    resource = TextResourceContents(resourceUri, "Embedded resource content for testing.", "text/plain")
    return [UserMessage(EmbeddedResource(resource)), UserMessage("Please process the embedded resource above.")]


@server.prompt()
def test_prompt_with_image() -> list[Message]:
    """A prompt with an image."""
    return [UserMessage(Image(data=PNG, format="png")), UserMessage("Please analyze the image above.")]


@server.prompt()
async def test_input_required_result_prompt(ctx: Context) -> str:
    """A prompt that asks first."""
    answer = await ctx.elicit("What should the prompt be about?", Topic, key="user_context")
    return f"Write about {answer.data.context}" if answer.action == "accept" else "Write about anything"


@server.completion()
def complete(ref: object, argument: object, context: object) -> Completion:
    return Completion(values=["test_value_1", "test_value_2"], total=2, has_more=False)


lambda_handler = server.lambda_handler(server.app())
