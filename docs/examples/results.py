"""What tools may return, and what clients get of it."""

from dataclasses import dataclass
from typing import Annotated

from mcp_stateless import CallToolResult, Image, MCPServer, ResourceLink, TextContent

server = MCPServer("results", version="1.0.0")

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360000002000001e221bc330000000049454e44ae426082"
)


# region data
@dataclass
class Point:
    x: float
    y: float


@server.tool()
def corners() -> list[Point]:
    """Data: structured content with an output schema, and the same as JSON text."""
    return [Point(0, 0), Point(1, 2)]


# endregion


# region content
@server.tool()
def drawing() -> list[TextContent | Image | ResourceLink]:
    """Content: blocks in this order, no structured content."""
    return [
        TextContent("One pixel, and where there are more"),
        Image(data=PIXEL, format="png"),
        ResourceLink(uri="drawings://all", name="all-drawings"),
    ]


# endregion


# region whole
@server.tool()
def measured() -> Annotated[CallToolResult, Point]:
    """Both: text for the model, a Point for programs, and `_meta` for the host."""
    return CallToolResult(["In the middle"], structured_content=Point(0.5, 1), meta={"example.com/unit": "m"})


# endregion
