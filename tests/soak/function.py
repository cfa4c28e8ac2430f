"""The function under test: one tool whose answer shows whose it is, and whose messages show that none is missing."""

import asyncio

from mcp_stateless import Context, MCPServer

server = MCPServer("soak", version="1.0.0")


@server.tool(long_running=True, timeout_seconds=8)
async def count(token: str, steps: int, pause_ms: int, ctx: Context) -> str:
    """Log each step, report it as progress, and give the token back."""
    for step in range(1, steps + 1):
        await asyncio.sleep(pause_ms / 1000)
        await ctx.info(f"{token} {step}")
        await ctx.report_progress(step, steps)
    return token


lambda_handler = server.lambda_handler(server.app())
