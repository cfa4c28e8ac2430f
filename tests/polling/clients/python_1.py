# mypy: ignore-errors
# Written for releases 1.x of `mcp`, which are not in the environment that checks types.
"""Make long calls through the official Python client 1.x, one alone and three at once.

    python python_1.py URL

Prints one JSON object. Nothing of this repository can be imported here.
"""

import asyncio
import json
import sys
from datetime import timedelta

from mcp import ClientSession
from mcp.client import streamable_http

SECONDS = 20
connect = getattr(streamable_http, "streamable_http_client", None) or streamable_http.streamablehttp_client


async def call(session, name, arguments):
    seen = []

    async def progressed(progress, total, message):
        seen.append([progress, total, message])

    result = await session.call_tool(name, arguments, progress_callback=progressed)
    return {"text": result.content[0].text, "isError": result.isError, "seen": seen}


async def main(url):
    async with (
        connect(url) as (incoming, outgoing, _),
        ClientSession(incoming, outgoing, timedelta(seconds=SECONDS)) as session,
    ):
        await session.initialize()
        report = {"alone": await call(session, "long", {"n": 1})}
        report["together"] = await asyncio.gather(*(call(session, "long", {"n": n}) for n in (2, 3, 4)))
        report["awkward"] = await call(session, "awkward", {})
        report["failing"] = await call(session, "failing", {})
    print(json.dumps(report))


asyncio.run(asyncio.wait_for(main(sys.argv[1]), SECONDS))
