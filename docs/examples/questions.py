"""Questions to the user in the middle of a call, without a connection that stays open."""

import asyncio
from typing import Literal

from pydantic import BaseModel

from mcp_stateless import AcceptedElicitation, Context, InputRequired, MCPServer
from mcp_stateless.questions import form

server = MCPServer("shop", version="1.0.0")

ORDERS: list[str] = []


# region elicit
class Choice(BaseModel):
    size: Literal["small", "large"]
    gift: bool = False


@server.tool()
async def order_tea(kind: str, ctx: Context) -> str:
    """Order tea; the size is asked for."""
    answer = await ctx.elicit(f"Which size of {kind}?", Choice, key="size")
    if not isinstance(answer, AcceptedElicitation):
        return f"Nothing was ordered: the user chose to {answer.action}"
    return f"Ordered: {answer.data.size} {kind}{', wrapped' if answer.data.gift else ''}"


# endregion


# region fallback
@server.tool()
async def order_coffee(ctx: Context, size: Literal["small", "large"] | None = None) -> str:
    """Order coffee. Give the size, or let the user be asked where the client can do that."""
    if size is None and ctx.can_elicit:
        answer = await ctx.elicit("Which size of coffee?", Choice, key="size")
        size = answer.data.size if isinstance(answer, AcceptedElicitation) else None
    return f"Ordered: {size} coffee" if size else "Say a size: small or large"


# endregion


# region step
class Consent(BaseModel):
    agreed: bool


def place(idempotency_key: str) -> str:
    """Stands for a payment service that takes an idempotency key."""
    if idempotency_key not in ORDERS:
        ORDERS.append(idempotency_key)
    return f"order {len(ORDERS)}"


@server.tool()
async def order_and_rate(ctx: Context) -> str:
    """Place an order, then ask what the user thinks of it."""
    order = await ctx.step("place", place)
    answer = await ctx.elicit(f"{order} is placed. Are you content?", Consent, key="content")
    content = isinstance(answer, AcceptedElicitation) and answer.data.agreed
    return f"{order}: the user is {'content' if content else 'not content'}"


# endregion


# region parallel
@server.tool()
async def order_for_two(ctx: Context) -> str:
    """Ask both guests in one round."""
    first, second = await asyncio.gather(
        ctx.elicit("Tea for the first guest", Choice, key="first"),
        ctx.elicit("Tea for the second guest", Choice, key="second"),
    )
    sizes = [answer.data.size for answer in (first, second) if isinstance(answer, AcceptedElicitation)]
    return f"Ordered: {', '.join(sizes) or 'nothing'}"


# endregion


# region explicit
@server.tool(asks=True)
def order_by_hand(ctx: Context) -> str | InputRequired:
    """Keep the books yourself: return what to ask, and read the raw answers in the next round."""
    if not ctx.input_responses:
        return InputRequired({"size": form("Which size?", Choice)}, state={"cups": 2})
    answer = ctx.input_responses["size"]
    return f"Ordered: {ctx.request_state['cups']} cups, {answer}"


# endregion
