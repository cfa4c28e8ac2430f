"""The server that real clients poll: a function for requests and a function for work run this same code."""

import asyncio
from typing import Final

from mcp_stateless import Context, MCPServer, ToolError

STEPS: Final = 4
SLICE_S: Final = 0.15
AWKWARD: Final = "two\r\nlines\u2028and\u2029more\x85 ä😀"

server = MCPServer("deployed", "1")


@server.tool(long_running=True, structured_output=False)
async def long(n: int, ctx: Context[None]) -> str:
    """Take long, and report on it."""
    for step in range(1, STEPS + 1):
        await ctx.report_progress(step, STEPS, f"{n} at {step}")
        await asyncio.sleep(SLICE_S)
    return f"done {n}"


@server.tool(long_running=True, structured_output=False)
async def awkward() -> str:
    """Return what parsers of lines trip over."""
    return AWKWARD


@server.tool(long_running=True)
async def failing() -> str:
    """Refuse."""
    raise ToolError("There is nothing to be had")


lambda_handler = server.lambda_handler()
