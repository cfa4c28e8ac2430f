"""Progress, from a function that awaits and from one that does not."""

import asyncio
import time

from mcp_stateless import Context, MCPServer

server = MCPServer("progress", version="1.0.0")


# region async
@server.tool()
async def add_up(numbers: list[float], ctx: Context) -> float:
    """Add numbers up, slowly enough to watch."""
    total = 0.0
    for done, number in enumerate(numbers, start=1):
        total += number
        await asyncio.sleep(0.001)
        await ctx.report_progress(done, len(numbers), f"{done} of {len(numbers)} added")
    return total


# endregion


# region blocking
@server.tool()
def add_up_in_a_thread(numbers: list[float], ctx: Context) -> float:
    """The same without await: a plain function runs in a thread and uses ctx.blocking."""
    total = 0.0
    for done, number in enumerate(numbers, start=1):
        total += number
        time.sleep(0.001)
        ctx.blocking.report_progress(done, len(numbers))
    return total


# endregion
