"""Tools that know who calls, need scopes, and are seen by some callers only."""

from mcp_stateless import Context, MCPServer, Principal
from mcp_stateless.definitions.prompt import Prompt
from mcp_stateless.definitions.resource import Resource, ResourceTemplate
from mcp_stateless.definitions.tool import Tool

NOTES: dict[str, list[str]] = {}


# region visible
STAFF_ONLY = {"close_library"}


def visible(caller: Principal, definition: Tool | Prompt | Resource | ResourceTemplate) -> bool:
    """Visitors do not hear of what is for the staff."""
    return definition.name not in STAFF_ONLY or caller.claims.get("team") == "staff"


# endregion
# region grants
def grants(granted: frozenset[str], needed: str) -> bool:
    """Who may write may read."""
    return needed in granted or (needed == "notes:read" and "notes:write" in granted)


# endregion
server = MCPServer("library", version="1.0.0", visible=visible, grants=grants)


# region principal
@server.tool(scopes=["notes:write"])
def keep_note(text: str, ctx: Context) -> int:
    """Keep a note; returns how many there are."""
    notes = NOTES.setdefault(ctx.principal.key, [])
    notes.append(text)
    return len(notes)


@server.tool(scopes=["notes:read"])
def my_notes(ctx: Context) -> list[str]:
    """Read the notes that the caller kept."""
    return NOTES.get(ctx.principal.key, [])


# endregion
@server.tool()
def close_library() -> str:
    """Close the library for the day."""
    return "closed"


lambda_handler = server.lambda_handler()
