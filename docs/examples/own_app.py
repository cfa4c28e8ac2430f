"""Two MCP servers and routes of your own in one FastAPI app."""

# region app
from fastapi import FastAPI

from mcp_stateless import MCPServer

numbers = MCPServer("numbers", version="1.0.0")
words = MCPServer("words", version="1.0.0")


@numbers.tool()
def double(value: int) -> int:
    """Double a number."""
    return value * 2


@words.tool()
def shout(text: str) -> str:
    """Write a text in capitals."""
    return text.upper()


app = FastAPI()
app.include_router(numbers.router(), prefix="/numbers")
app.include_router(words.router(), prefix="/words")


@app.get("/status")
def status() -> dict[str, str]:
    return {"status": "up"}


lambda_handler = numbers.lambda_handler(app)
# endregion
