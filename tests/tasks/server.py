"""The server that real clients of tasks and of long calls talk to; see `processes.py` for how it is deployed."""

import asyncio

from pydantic import BaseModel

from mcp_stateless import Context, MCPServer, ToolError

server = MCPServer("tasks", version="1.0.0")


class Name(BaseModel):
    name: str


class Age(BaseModel):
    age: int


@server.tool(long_running=True)
async def takes_a_while(seconds: float, ctx: Context) -> str:
    """Take that long, and report on the way, by which a cancellation is noticed."""
    for tenth in range(round(seconds * 10)):
        await ctx.report_progress(tenth / 10, seconds, "under way")
        await asyncio.sleep(0.1)
    return f"took {seconds} s"


@server.tool(long_running=True)
async def refuses() -> str:
    """Fail on purpose."""
    raise ToolError("There is nothing to be had")


@server.tool(long_running=True)
async def asks(ctx: Context) -> str:
    """Ask for a name."""
    answer = await ctx.elicit("Name?", Name, key="name")
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"Hello, {answer.action}!"


@server.tool(long_running=True)
async def asks_two(ctx: Context) -> str:
    """Ask for two things at once."""
    name, age = await asyncio.gather(ctx.elicit("Name?", Name, key="name"), ctx.elicit("Age?", Age, key="age"))
    told = name.data.name if name.action == "accept" else name.action
    return f"{told} is {age.data.age if age.action == 'accept' else age.action}"


@server.tool()
async def asks_shortly(ctx: Context) -> str:
    """Ask for a name, in a tool that is not long by itself."""
    answer = await ctx.elicit("Name?", Name, key="name")
    return f"Hello, {answer.data.name}!" if answer.action == "accept" else f"Hello, {answer.action}!"


lambda_handler = server.lambda_handler(server.app())
