"""`*/list` methods: pages of definitions in the shape of the client's revision."""

import base64
import binascii
from collections.abc import Mapping
from typing import TypeVar

from mcp_stateless.definitions.tool import Tool, object_output_schema
from mcp_stateless.errors import InvalidParams
from mcp_stateless.exchange import Exchange
from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.revisions import Revision, Wire
from mcp_stateless.registry import Registry

D = TypeVar("D")


async def list_tools(registry: Registry, exchange: Exchange) -> Wire:
    page, end = _page(registry.tools, "tool", exchange)
    return {"tools": [_tool(tool, exchange.revision) for tool in page], **end}


async def list_prompts(registry: Registry, exchange: Exchange) -> Wire:
    page, end = _page(registry.prompts, "prompt", exchange)
    return {"prompts": [revisions.prompt(prompt.to_wire(), exchange.revision) for prompt in page], **end}


async def list_resources(registry: Registry, exchange: Exchange) -> Wire:
    page, end = _page(registry.resources, "resource", exchange)
    return {"resources": [revisions.resource(item.to_wire(), exchange.revision) for item in page], **end}


async def list_templates(registry: Registry, exchange: Exchange) -> Wire:
    page, end = _page(registry.templates, "template", exchange)
    return {"resourceTemplates": [revisions.resource(item.to_wire(), exchange.revision) for item in page], **end}


def _tool(tool: Tool, revision: Revision) -> Wire:
    wire = tool.to_wire()
    if tool.output_schema is not None and not revision.modern:
        wire["outputSchema"] = object_output_schema(tool.output_schema)
    return revisions.tool(wire, revision)


def _page(definitions: Mapping[str, D], kind: str, exchange: Exchange) -> tuple[list[D], Wire]:
    """The page after the cursor, and `{"nextCursor": ...}` if there is another.

    A cursor says "after this name" and nothing else, so it works in every environment; it is checked, not signed,
    since all it can name is a place in a list that the caller may read anyway.
    """
    keys = list(definitions)
    start = 0
    if "cursor" in exchange.call.params:
        start = keys.index(_cursor_name(exchange.call.params["cursor"], kind, keys)) + 1
    end = start + exchange.settings.page_size if exchange.settings.page_size else len(keys)
    more: Wire = {"nextCursor": _cursor(kind, keys[end - 1])} if end < len(keys) else {}
    return [definitions[key] for key in keys[start:end]], more


def _cursor(kind: str, name: str) -> str:
    return base64.urlsafe_b64encode(f"{kind}:{name}".encode()).decode()


def _cursor_name(cursor: object, kind: str, keys: list[str]) -> str:
    """The name in a cursor. The last entry's is none that was ever given: there is nothing after it."""
    try:
        text = base64.b64decode(str(cursor), altchars=b"-_", validate=True).decode()
    except (binascii.Error, ValueError):
        text = ""
    prefix, _, name = text.partition(":")
    if not isinstance(cursor, str) or prefix != kind or name not in keys[:-1]:
        raise InvalidParams("Invalid cursor")
    return name
