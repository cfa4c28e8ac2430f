"""The methods of each era: one table an era, from a method's name to the function that answers it.

A method takes the server's registry and one `Exchange`, and returns the result object or raises a `ProtocolError`.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from mcp_stateless.calling import call_tool, complete, get_prompt, read_resource
from mcp_stateless.calls import tasks
from mcp_stateless.calls.client_token import HEADER, ClientToken, asked_of
from mcp_stateless.calls.desk import TASKS, CallDesk
from mcp_stateless.content import CacheHint
from mcp_stateless.errors import InvalidParams, MethodNotFound
from mcp_stateless.exchange import Exchange
from mcp_stateless.listing import list_prompts, list_resources, list_templates, list_tools
from mcp_stateless.principal import Principal
from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.envelope import notification_message
from mcp_stateless.protocol.inbound import LOG_LEVELS, META_SERVER_INFO, META_SUBSCRIPTION, Call
from mcp_stateless.protocol.media import accepts
from mcp_stateless.protocol.revisions import Wire, modern_names
from mcp_stateless.registry import Registry

Method: TypeAlias = Callable[[Registry, Exchange], Awaitable[Wire]]


async def answer(registry: Registry, exchange: Exchange) -> Wire:
    """The result of a call.

    Raises:
        ProtocolError: the call is answered with a JSON-RPC error.
    """
    call, registry = exchange.call, registry.seen_by(exchange.principal)
    method = (MODERN if exchange.revision.modern else LEGACY).get(call.method)
    family = _FAMILY.get(call.method)
    if method is None or (family is not None and family not in _served(registry, exchange)):
        raise MethodNotFound("Method not found")
    result = await method(registry, exchange)
    return completed(registry, exchange, result) if exchange.revision.modern else result


def completed(registry: Registry, exchange: Exchange, result: Wire) -> Wire:
    """What every result of the modern era carries on top."""
    meta = result.get("_meta")
    server_info = {META_SERVER_INFO: registry.implementation.to_wire()}
    full: Wire = {
        "resultType": "complete",
        **result,
        "_meta": {**meta, **server_info} if isinstance(meta, dict) else server_info,
    }
    if exchange.call.method in CACHEABLE and full["resultType"] == "complete":
        hint = _cache_hint(registry, exchange)
        full["ttlMs"] = hint.ttl_ms
        full["cacheScope"] = hint.scope if registry.visible is None and _is_public(exchange) else "private"
    return full


async def _initialize(registry: Registry, exchange: Exchange) -> Wire:
    if registry.gives_client_tokens(exchange.settings.client_token) and exchange.revision.closes_streams:
        _give_client_token(exchange)
    card = revisions.fields("implementation", registry.implementation.to_wire(), exchange.revision)
    return {"protocolVersion": exchange.revision.name, "serverInfo": card, **_offer(registry, exchange)}


def _give_client_token(exchange: Exchange) -> None:
    keys, environment = exchange.environment.keys, exchange.environment
    if environment.desk is None or keys is None:
        return
    token = ClientToken(environment.new_id(), asked_of(exchange.call.params.get("capabilities")))
    expires_at = int(environment.clock()) + exchange.settings.client_token_ttl_s
    exchange.reply_headers[HEADER] = token.sealed(keys, exchange.principal, expires_at)


async def _discover(registry: Registry, exchange: Exchange) -> Wire:
    return {"supportedVersions": modern_names(exchange.settings.revisions), **_offer(registry, exchange)}


async def _ping(registry: Registry, exchange: Exchange) -> Wire:
    return {}


async def _set_level(registry: Registry, exchange: Exchange) -> Wire:
    """Accepted and forgotten: the next request may reach another environment."""
    if exchange.call.params.get("level") not in LOG_LEVELS:
        raise InvalidParams(f'Invalid params: "level" must be one of {", ".join(LOG_LEVELS)}')
    return {}


async def _listen(registry: Registry, exchange: Exchange) -> Wire:
    """Nothing is ever pushed, so: an acknowledgement of nothing and the end of the stream (Go clients need both)."""
    if exchange.settings.json_response or not accepts(exchange.headers.get("accept"))[1]:
        raise MethodNotFound("Method not found")
    tag: Wire = {META_SUBSCRIPTION: exchange.call.id}
    exchange.collector.messages.append(
        notification_message("notifications/subscriptions/acknowledged", {"_meta": tag, "notifications": {}})
    )
    return {"_meta": tag}


def _task_method(method: Callable[[CallDesk, Call, Principal], Awaitable[Wire]]) -> Method:
    async def answered(registry: Registry, exchange: Exchange) -> Wire:
        if exchange.environment.desk is None:
            raise MethodNotFound("Method not found")
        return await method(exchange.environment.desk, exchange.call, exchange.principal)

    return answered


_SHARED: Final[Mapping[str, Method]] = {
    "tools/list": list_tools,
    "tools/call": call_tool,
    "prompts/list": list_prompts,
    "prompts/get": get_prompt,
    "resources/list": list_resources,
    "resources/templates/list": list_templates,
    "resources/read": read_resource,
    "completion/complete": complete,
}

LEGACY: Final[Mapping[str, Method]] = {
    **_SHARED,
    "initialize": _initialize,
    "ping": _ping,
    "logging/setLevel": _set_level,
}
"""Methods of 2024-11-05 to 2025-11-25."""

MODERN: Final[Mapping[str, Method]] = {
    **_SHARED,
    "server/discover": _discover,
    "subscriptions/listen": _listen,
    "tasks/get": _task_method(tasks.get),
    "tasks/update": _task_method(tasks.update),
    "tasks/cancel": _task_method(tasks.cancel),
}
"""Methods of 2026-07-28."""

_FAMILY: Final[Mapping[str, str]] = {
    "tools/list": "tools",
    "tools/call": "tools",
    "prompts/list": "prompts",
    "prompts/get": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resources",
    "resources/read": "resources",
    "completion/complete": "completions",
    "logging/setLevel": "logging",
}
"""The capability that must be offered for a method to be there."""

CACHEABLE: Final = (
    "server/discover",
    "tools/list",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
)
"""Methods whose results say how long they may be kept (2026-07-28, caching)."""


def _cache_hint(registry: Registry, exchange: Exchange) -> CacheHint:
    """What the author said of this resource or this method, else the settings."""
    method, settings = exchange.call.method, exchange.settings
    if exchange.cache_hint is not None:
        return exchange.cache_hint
    if method in registry.cache_hints:
        return registry.cache_hints[method]
    return CacheHint(settings.resource_ttl_ms if method == "resources/read" else settings.list_ttl_ms)


def _offer(registry: Registry, exchange: Exchange) -> Wire:
    offer: Wire = {"capabilities": _capabilities(registry, exchange)}
    return offer if registry.instructions is None else {**offer, "instructions": registry.instructions}


def _served(registry: Registry, exchange: Exchange) -> Wire:
    """The families of methods that are there; 2024-11-05 completes without a capability that says so."""
    served = registry.capabilities(logging=exchange.settings.log_messages != "off")
    if exchange.environment.desk is not None and registry.has_long_tools:
        served["extensions"] = {TASKS: {}}
    return served


def _capabilities(registry: Registry, exchange: Exchange) -> Wire:
    return revisions.fields("capabilities", _served(registry, exchange), exchange.revision)


def _is_public(exchange: Exchange) -> bool:
    """Whether an answer may be shared among callers: only when nothing told them apart."""
    return exchange.principal.is_anonymous and "authorization" not in exchange.headers
