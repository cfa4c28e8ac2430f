# mypy: ignore-errors
# Written for release 1.x of `mcp`, which is not in the environment that checks types.
"""Hold conversations with a server through the official Python client 1.x, each with a client of its own.

    python python_client_1.py URL SCENARIO...

Prints one JSON object: for each scenario what it found, or the error it ended with. Nothing of this repository can be
imported here.
"""

import asyncio
import json
import sys
import traceback
from datetime import timedelta

import httpx
from mcp import ClientSession, McpError, types
from mcp.client.streamable_http import streamable_http_client

SECONDS = 20


def found(result):
    told = {"text": "\n".join(block.text for block in result.content)}
    if result.structuredContent is not None:
        told["structured"] = result.structuredContent
    return {**told, "isError": True} if result.isError else told


async def connect(session, initialized):
    capabilities = initialized.capabilities.model_dump(exclude_none=True)
    return {
        "version": initialized.protocolVersion,
        "server": initialized.serverInfo.model_dump(exclude_none=True),
        "instructions": initialized.instructions,
        "capabilities": sorted(capabilities),
    }


async def list_everything(session, initialized):
    return {
        "tools": [tool.name for tool in (await session.list_tools()).tools],
        "resources": [str(resource.uri) for resource in (await session.list_resources()).resources],
        "templates": [item.uriTemplate for item in (await session.list_resource_templates()).resourceTemplates],
        "prompts": [prompt.name for prompt in (await session.list_prompts()).prompts],
    }


async def structured(session, initialized):
    await session.list_tools()  # from here on the client holds every result against the tool's output schema
    return found(await session.call_tool("measure", {"text": "größer als klein"}))


async def text(session, initialized):
    return found(await session.call_tool("shout", {"text": "größer"}))


async def failure(session, initialized):
    return found(await session.call_tool("fails"))


async def missing(session, initialized):
    codes = []
    for attempt in (
        session.call_tool("nothing"),
        session.read_resource("nothing://here"),
        session.get_prompt("nothing"),
    ):
        try:
            await attempt
        except McpError as error:
            codes.append(error.error.code)
    return codes


async def header(session, initialized):
    return found(await session.call_tool("forecast", {"city": "Zürich"}))


async def read(session, initialized):
    results = [await session.read_resource(uri) for uri in ("notes://today", "cities://Oslo")]
    return [item.text for result in results for item in result.contents]


async def prompt(session, initialized):
    return [message.content.text for message in (await session.get_prompt("review", {"text": "this"})).messages]


async def complete(session, initialized):
    reference = types.ResourceTemplateReference(type="ref/resource", uri="cities://{city}")
    return (await session.complete(reference, {"name": "city", "value": "L"})).completion.values


async def progress(session, initialized):
    seen = []

    async def progressed(*report):
        seen.append(report)

    result = await session.call_tool("count", {"to": 3}, progress_callback=progressed)
    return {**found(result), "seen": seen}


async def often(session, initialized):
    return [found(await session.call_tool("shout", {"text": str(number)}))["text"] for number in range(8)]


async def accept(session, initialized):
    return found(await session.call_tool("asks"))


SCENARIOS = {
    "connect": connect,
    "list": list_everything,
    "structured": structured,
    "text": text,
    "failure": failure,
    "missing": missing,
    "header": header,
    "read": read,
    "prompt": prompt,
    "complete": complete,
    "progress": progress,
    "often": often,
    "accept": accept,
}


async def never(*request):
    raise AssertionError("nobody can be asked over this connection")


async def converse(url, name):
    async with (
        httpx.AsyncClient(headers={"x-scenario": name}) as http,
        streamable_http_client(url, http_client=http) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing, timedelta(seconds=SECONDS), elicitation_callback=never) as session,
    ):
        return {"value": await SCENARIOS[name](session, await session.initialize())}


async def main(url, names):
    report = {}
    for name in names:
        try:
            report[name] = await asyncio.wait_for(converse(url, name), SECONDS)
        except Exception:
            report[name] = {"error": traceback.format_exc()}
    print(json.dumps(report))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
