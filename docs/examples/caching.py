"""Answers that clients at 2026-07-28 may keep for a while."""

# region hints
from mcp_stateless import CacheHint, MCPServer

server = MCPServer("almanac", version="1.0.0", cache_hints={"tools/list": CacheHint(ttl_ms=3_600_000)})


@server.resource("almanac://moon", mime_type="text/plain", cache_hint=CacheHint(ttl_ms=86_400_000))
def moon() -> str:
    """The phase of the moon, the same for everybody and all day."""
    return "waxing"


# endregion


@server.tool()
def tides(port: str) -> str:
    """Tell the next high tide of a port."""
    return f"{port}: 14:05"
