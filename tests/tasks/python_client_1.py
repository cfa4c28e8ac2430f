# mypy: ignore-errors
# Written for release 1.x of `mcp`, which is not in the environment that checks types.
"""Call one tool through the official Python client 1.x, as a user who takes some time to answer.

    python python_client_1.py URL TOOL ARGUMENTS

Prints one JSON object: the text of the result, and what was asked. Nothing of this repository can be imported here.
"""

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession, types
from mcp.client.streamable_http import streamable_http_client

ANSWER_AFTER_S = 1.0
SECONDS = 20


async def main(url, tool, arguments):
    seen = []

    async def answer(context, params):
        seen.append(params.message)
        await asyncio.sleep(ANSWER_AFTER_S)
        return types.ElicitResult(action="accept", content={"name": "Ada"})

    async with (
        streamable_http_client(url) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing, timedelta(seconds=SECONDS), elicitation_callback=answer) as session,
    ):
        await session.initialize()
        result = await session.call_tool(tool, json.loads(arguments))
        print(json.dumps({"text": "\n".join(block.text for block in result.content), "seen": seen}))


asyncio.run(asyncio.wait_for(main(*sys.argv[1:]), SECONDS))
