"""The server that the real clients of this folder talk to: one tool for each thing a client has to cope with.

What a call does may depend on the environment it runs in (`ENVIRONMENT`), as it may on different machines: the answer
must not.
"""

import asyncio
import os
import random
import secrets
from typing import Annotated, Final, TypeAlias

from pydantic import BaseModel, Field

from mcp_stateless import Completion, Context, MCPServer, ToolError
from mcp_stateless.content import CompletionArgument, CompletionContext, PromptReference, ResourceTemplateReference
from mcp_stateless.questions import AcceptedElicitation, CancelledElicitation, DeclinedElicitation

CITIES: Final = ("Leipzig", "Lisbon", "London", "Oslo")

server = MCPServer("clients", version="1.2.3", title="For clients", instructions="Call the tools.")


class Size(BaseModel):
    words: int
    characters: int


class Colour(BaseModel):
    colour: str


class Number(BaseModel):
    number: int


class Consent(BaseModel):
    agreed: bool


Reply: TypeAlias = (
    AcceptedElicitation[Colour] | AcceptedElicitation[Number] | DeclinedElicitation | CancelledElicitation
)


@server.tool()
def measure(text: str) -> Size:
    """Count words and characters."""
    return Size(words=len(text.split()), characters=len(text))


@server.tool(structured_output=False)
def shout(text: str) -> str:
    """Say it in capitals."""
    return text.upper()


@server.tool()
def fails() -> str:
    """Refuse."""
    raise ToolError("There is nothing to be had")


@server.tool()
def forecast(city: Annotated[str, Field(json_schema_extra={"x-mcp-header": "City"})]) -> str:
    """Tell the weather; a header repeats the city."""
    return f"Rain in {city}"


@server.tool()
async def count(to: int, ctx: Context) -> int:
    """Count and report on it."""
    for number in range(1, to + 1):
        await ctx.report_progress(number, to, f"at {number}")
    return to


@server.tool()
async def asks(ctx: Context) -> str:
    """Ask for a colour."""
    return _told(await ctx.elicit("Which colour?", Colour))


@server.tool()
def asks_from_a_thread(ctx: Context) -> str:
    """Ask for a colour, without await."""
    return _told(ctx.blocking.elicit("Which colour?", Colour))


@server.tool()
async def asks_to_open_a_page(ctx: Context) -> str:
    """Ask the user to pay on a page."""
    return (await ctx.elicit_url("Please pay", "https://pay.example.com/1")).action


@server.tool()
async def asks_twice(ctx: Context) -> str:
    """Ask for a colour, then for another one."""
    first = _told(await ctx.elicit("Which colour?", Colour))
    return f"{first}, then {_told(await ctx.elicit(f'Which colour after {first}?', Colour))}"


@server.tool()
async def asks_in_parallel(seed: int, ctx: Context, grouped: bool = False) -> list[str]:
    """Ask everything at once, each question after I/O that takes another time in another environment."""
    chance = random.Random(f"{seed}/{os.environ['ENVIRONMENT']}")

    async def number(index: int) -> str:
        await asyncio.sleep(chance.uniform(0, 0.004))
        return _told(await ctx.elicit(f"Number {index}?", Number))

    async def verse() -> str:
        await asyncio.sleep(chance.uniform(0, 0.004))
        return (await ctx.sample("A verse, please")).text

    async def folders() -> str:
        await asyncio.sleep(chance.uniform(0, 0.004))
        return str(len(await ctx.list_roots()))

    questions = [*(number(index) for index in range(4)), verse(), folders()]
    if not grouped:
        return list(await asyncio.gather(*questions))
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(question) for question in questions]
    return [task.result() for task in tasks]


@server.tool()
async def asks_many(many: int, ctx: Context) -> list[str]:
    """Ask for each of many things at once; each is looked up first, and some services are slower than others."""

    async def number(index: int) -> str:
        await asyncio.sleep(index * 0.003)
        return _told(await ctx.elicit(f"Number {index}?", Number))

    return list(await asyncio.gather(*(number(index) for index in range(many))))


@server.tool()
async def pays_and_asks(ctx: Context) -> str:
    """Pay in one task, ask in another, and say in which environment it was paid."""

    async def pay() -> str:
        await asyncio.sleep(0.03)
        return os.environ["ENVIRONMENT"]

    paid, _ = await asyncio.gather(ctx.step("pay", pay), ctx.elicit("Which colour?", Colour))
    return str(paid)


@server.tool()
async def books(ctx: Context) -> str:
    """Reserve once, ask for consent, and say which reservation it was."""
    reservation = await ctx.step("reserve", lambda: secrets.token_hex(8))
    answer = await ctx.elicit(f"Book {reservation}?", Consent)
    return f"booked {reservation}" if answer.action == "accept" and answer.data.agreed else "not booked"


@server.tool()
async def samples(ctx: Context) -> str:
    """Ask the client's model."""
    result = await ctx.sample("A verse, please", max_tokens=50)
    return f"{result.model}: {result.text}"


@server.tool()
async def lists_roots(ctx: Context) -> list[str]:
    """Ask for the client's folders."""
    return [root.uri for root in await ctx.list_roots()]


@server.resource("notes://today", mime_type="text/plain")
def today() -> str:
    """What is on today."""
    return "Write tests"


@server.resource("letters://{to}", mime_type="text/plain")
async def letter(to: str, ctx: Context) -> str:
    """A letter in the colour that the user wants."""
    return f"Dear {to}, {_told(await ctx.elicit('Which colour?', Colour))}"


@server.resource("cities://{city}", mime_type="text/plain")
def city(city: str) -> str:
    """About a city."""
    return f"{city} is a city"


@server.prompt()
def review(text: str) -> str:
    """Review a text."""
    return f"Please review: {text}"


@server.prompt()
async def paint(ctx: Context) -> str:
    """Paint in the colour that the user wants."""
    return f"Paint: {_told(await ctx.elicit('Which colour?', Colour))}"


@server.completion()
def complete(
    ref: PromptReference | ResourceTemplateReference, argument: CompletionArgument, context: CompletionContext | None
) -> Completion:
    """Cities that begin with what is there."""
    return Completion([city for city in CITIES if city.startswith(argument.value)])


def _told(answer: Reply) -> str:
    if answer.action != "accept":
        return answer.action
    return answer.data.colour if isinstance(answer.data, Colour) else str(answer.data.number)


lambda_handler = server.lambda_handler(server.app())
