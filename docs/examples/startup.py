"""Something slow to open: once in each execution environment, never per call."""

from mcp_stateless import MCPServer

server = MCPServer("phonebook", version="1.0.0")

# region start
BOOK: dict[str, str] = {}


@server.on_start
async def open_the_book() -> None:
    """Open a connection, load a model, read a file: whatever the tools share."""
    BOOK.update({"Ada": "36", "Grace": "85"})


@server.tool()
def number_of(name: str) -> str | None:
    """Look up a number."""
    return BOOK.get(name)


# endregion
lambda_handler = server.lambda_handler()
