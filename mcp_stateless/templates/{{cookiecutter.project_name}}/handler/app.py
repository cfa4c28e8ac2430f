"""An MCP server on AWS Lambda. Add a tool by writing a typed function."""

#% if cookiecutter.polling == "yes" %#
import asyncio
#% endif %#
import difflib
#% if cookiecutter.polling == "yes" %#
import itertools
#% endif %#
import re
from typing import Annotated

#% if cookiecutter.polling == "yes" %#
from mcp_stateless import Context, MCPServer, ToolError
#% else %#
from mcp_stateless import MCPServer, ToolError
#% endif %#
from pydantic import BaseModel, Field

server = MCPServer(
    "{{ cookiecutter.project_name }}",
    version="0.1.0",
    instructions="Exact answers about texts.",
)


class TextCounts(BaseModel):
    characters: int
    words: int
    lines: int
    longest_word: str


@server.tool()
def count_words(text: Annotated[str, Field(description="The text to count")]) -> TextCounts:
    """Count the characters, words and lines of a text exactly."""
    words = re.findall(r"[^\W_]+(?:['\u2019-][^\W_]+)*", text)
    if not words:
        raise ToolError("There is no word in the text")
    return TextCounts(
        characters=len(text), words=len(words), lines=len(text.splitlines()), longest_word=max(words, key=len)
    )


@server.tool()
def compare_texts(before: str, after: str) -> str:
    """Show which lines differ between two texts, as a unified diff."""
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", lineterm="")
    return "\n".join(lines) or "The texts are the same, line by line"


#% if cookiecutter.polling == "yes" %#
class Pair(BaseModel):
    first: int = Field(description="Position of a text, from 0")
    second: int
    similarity: float


@server.tool(long_running=True, timeout_seconds=300)
async def find_duplicates(
    texts: Annotated[list[str], Field(min_length=2)],
    ctx: Context,
    similarity: Annotated[float, Field(gt=0, le=1, description="Least similarity of a pair; 1 is the same text")] = 0.9,
) -> list[Pair]:
    """Compare every text with every other and list the pairs that say nearly the same, the most similar first."""
    pairs = list(itertools.combinations(range(len(texts)), 2))
    found = []
    for done, (first, second) in enumerate(pairs):
        # In a thread: progress gets out meanwhile, and a cancelled call ends with the pair at hand.
        ratio = await asyncio.to_thread(difflib.SequenceMatcher(None, texts[first], texts[second]).ratio)
        if ratio >= similarity:
            found.append(Pair(first=first, second=second, similarity=round(ratio, 4)))
        await ctx.report_progress(done + 1, len(pairs), f"{len(found)} pairs so far")
    return sorted(found, key=lambda pair: -pair.similarity)


#% endif %#
app = server.app()
lambda_handler = server.lambda_handler(app)
