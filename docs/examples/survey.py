"""A tool that takes minutes: it runs in a work invocation, and the client comes back for the result."""

import asyncio
import random

from pydantic import BaseModel

from mcp_stateless import Context, MCPServer

server = MCPServer("survey", version="1.0.0")


# region tool
class Summary(BaseModel):
    runs: int
    mean: float


@server.tool(long_running=True, timeout_seconds=600, retries=1)
async def simulate(runs: int, ctx: Context, pause_ms: int = 500) -> Summary:
    """Throw a dice again and again; half a second a throw."""
    seed = await ctx.step("seed", lambda: random.randrange(10**6))
    dice = random.Random(seed)
    total = 0
    for done in range(1, runs + 1):
        total += dice.randint(1, 6)
        await asyncio.sleep(pause_ms / 1000)
        await ctx.report_progress(done, runs, f"throw {done}")
    return Summary(runs=runs, mean=total / runs)


# endregion

app = server.app()
lambda_handler = server.lambda_handler(app)
