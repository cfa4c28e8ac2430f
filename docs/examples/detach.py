"""A tool that asks first and then takes its time: the question is quick, the work is not."""

import asyncio

from pydantic import BaseModel

from mcp_stateless import AcceptedElicitation, Context, MCPServer

server = MCPServer("reports", version="1.0.0")


# region detach
class Period(BaseModel):
    months: int


@server.tool(long_running=True, timeout_seconds=300)
async def report(ctx: Context) -> str:
    """Write a report; the period is asked for."""
    answer = await ctx.elicit("How many months?", Period, key="months")
    if not isinstance(answer, AcceptedElicitation):
        return "No report was written"
    await ctx.detach()
    for month in range(answer.data.months):
        await asyncio.sleep(0.01)
        await ctx.report_progress(month + 1, answer.data.months)
    return f"A report on {answer.data.months} months"


# endregion
