# mypy: ignore-errors
# Written for `fastmcp` and `fastmcp-tasks`, which are not in the environment that checks types.
"""Drive tasks through FastMCP's client, and print one JSON object: what came of each scenario, or its error.

    python fastmcp_client.py URL SCENARIO...

Nothing of this repository can be imported here.
"""

import asyncio
import json
import sys
import traceback

from fastmcp import Client
from fastmcp.client.elicitation import ElicitResult
from fastmcp_tasks.client import call_tool_task

SECONDS = 20
ANSWERS = {"Name?": {"name": "Ada"}, "Age?": {"age": 36}}


async def answer(message, response_type, params, context):
    return ElicitResult(action="accept", content=ANSWERS[message])


async def completes(client):
    task = await call_tool_task(client, "takes_a_while", {"seconds": 0.3})
    began = await task.status()
    result = await task.result()
    ended = await task.status()
    return [began.status, result.content[0].text, ended.status]


async def transparent(client):
    return (await client.call_tool("takes_a_while", {"seconds": 0.1})).content[0].text


async def refused(client):
    result = await client.call_tool("refuses", raise_on_error=False)
    return [result.is_error, result.content[0].text]


async def cancels(client):
    task = await call_tool_task(client, "takes_a_while", {"seconds": 60}, raise_on_error=False)
    await task.cancel()
    ended = await task.wait(timeout=5)
    await task.cancel()
    return ended.status


async def asked(client):
    task = await call_tool_task(client, "asks_two")
    waiting = await task.wait(state="input_required", timeout=10)
    return [sorted(waiting.input_requests), (await task.result()).content[0].text]


SCENARIOS = {"completes": completes, "transparent": transparent, "refused": refused, "cancels": cancels, "asked": asked}


async def converse(url, name):
    async with Client(url, elicitation_handler=answer) as client:
        return {"value": await SCENARIOS[name](client)}


async def main(url, names):
    report = {}
    for name in names:
        try:
            report[name] = await asyncio.wait_for(converse(url, name), SECONDS)
        except Exception:
            report[name] = {"error": traceback.format_exc()}
    print(json.dumps(report))


asyncio.run(main(sys.argv[1], sys.argv[2:]))
