"""An MCP server on AWS Lambda. Add a tool by writing a typed function."""

import difflib
import re
from typing import Annotated

from mcp_stateless import MCPServer, ToolError
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


app = server.app()
lambda_handler = server.lambda_handler(app)
