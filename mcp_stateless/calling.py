"""Methods that run an author's function: `tools/call`, `prompts/get`, `resources/read`, `completion/complete`.

What goes wrong inside a tool is a result with `isError`, since hosts show that to the model and often hide JSON-RPC
errors. Everywhere else it is a JSON-RPC error. Only what an author raised on purpose is told to the client.
"""

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeVar

from mcp_stateless.calls.record import WireName
from mcp_stateless.calls.waiting import is_waiting
from mcp_stateless.context import Running
from mcp_stateless.definitions.header_params import check_parameter_headers
from mcp_stateless.definitions.resource import Resource, ResourceTemplate
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import (
    InternalError,
    InvalidParams,
    MissingClientCapability,
    NonDeterministicTool,
    ResourceNotFound,
    ToolError,
)
from mcp_stateless.exchange import Exchange
from mcp_stateless.identity import check_scopes
from mcp_stateless.journal import Journal
from mcp_stateless.long_calls import next_round, take_in
from mcp_stateless.protocol import revisions
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.questions import InputRequired, Question, declares
from mcp_stateless.registry import Registry
from mcp_stateless.results import failure, guarded, told, tool_result
from mcp_stateless.rounds import fresh, input_required, open_journal
from mcp_stateless.run import Asked, Detached, Done, Failed, Interrupted, Runnable, TimedOut, run

log = logging.getLogger(__name__)

R = TypeVar("R")


async def call_tool(registry: Registry, exchange: Exchange) -> Wire:
    tool = _named(registry.tools, exchange, "Unknown tool")
    arguments = _arguments(exchange)
    if exchange.revision.modern:
        check_parameter_headers(tool.header_params, arguments, exchange.headers)
        if not declares(exchange.call.client_capabilities, tool.requires):
            raise MissingClientCapability(tool.requires)
    check_scopes(exchange.principal, tool.scopes, exchange.environment.grants)
    desk = exchange.environment.desk
    try:
        if desk is not None and exchange.revision.modern and is_waiting(exchange.call.params):
            return await next_round(desk, exchange, tool)
        bound = guarded(lambda: tool.signature.bind(arguments), tool.name, exchange.reference)
        wire = None if desk is None else desk.wire_for(exchange.call, tool, exchange.headers)
        # A state that names no running call is of one that began in place: it goes on there, or is refused.
        began_in_place = exchange.revision.modern and "requestState" in exchange.call.params
        if desk is not None and wire is not None and not tool.detaches and not began_in_place:
            return await take_in(
                desk, wire, exchange, tool, arguments, fresh(exchange), registry.fingerprint(tool.digest)
            )
        return await _run_tool(registry, exchange, tool, arguments, bound, wire)
    except ToolError as error:
        return failure(str(error))


async def _run_tool(
    registry: Registry,
    exchange: Exchange,
    tool: Tool,
    arguments: Mapping[str, object],
    bound: Mapping[str, object],
    wire: WireName | None,
) -> Wire:
    """Run a tool in place; at a question to a legacy client, and where it detaches, it becomes a long call."""
    desk = exchange.environment.desk

    async def go_on_later(journal: Journal, asked: Mapping[str, Question] | None) -> Wire:
        assert desk is not None, "only a server with a desk can ask legacy clients and detach"
        fingerprint = registry.fingerprint(tool.digest)
        return await take_in(desk, wire or "polled", exchange, tool, arguments, journal.records, fingerprint, asked)

    def rendered(value: object) -> Wire:
        return tool_result(tool, value, exchange.revision)

    journal = open_journal(exchange, can_detach=wire is not None)
    return await _run(registry, exchange, tool, bound, rendered, journal, go_on_later)


async def get_prompt(registry: Registry, exchange: Exchange) -> Wire:
    prompt = _named(registry.prompts, exchange, "Unknown prompt")

    def rendered(value: object) -> Wire:
        messages = [revisions.message(message, exchange.revision) for message in prompt.messages(value)]
        return {"messages": messages, **({"description": prompt.description} if prompt.description else {})}

    return await _run_outside_tools(registry, exchange, prompt, prompt.bind(_arguments(exchange)), rendered)


async def read_resource(registry: Registry, exchange: Exchange) -> Wire:
    uri = exchange.call.params.get("uri")
    if not isinstance(uri, str):
        raise InvalidParams('Invalid params: "uri" must be a string')
    resource, variables = _resource(registry, uri)
    exchange.cache_hint = resource.cache_hint

    def rendered(value: object) -> Wire:
        found = resource.contents(value) if isinstance(resource, Resource) else resource.contents(value, uri)
        return {"contents": [revisions.contents(item, exchange.revision) for item in found]}

    return await _run_outside_tools(registry, exchange, resource, variables, rendered)


async def complete(registry: Registry, exchange: Exchange) -> Wire:
    provider = registry.completion
    assert provider is not None, "completion/complete is only dispatched where it is offered"
    arguments = provider.bind(exchange.call.params, registry.prompts, registry.templates)
    return await _run_outside_tools(
        registry, exchange, provider, arguments, lambda value: {"completion": provider.completion(value)}
    )


def _named(definitions: Mapping[str, R], exchange: Exchange, unknown: str) -> R:
    name = exchange.call.params.get("name")
    definition = definitions.get(name) if isinstance(name, str) else None
    if definition is None:
        raise InvalidParams(unknown)
    return definition


def _arguments(exchange: Exchange) -> Mapping[str, object]:
    arguments = exchange.call.params.get("arguments")
    if arguments is None:
        return {}
    if not isinstance(arguments, dict):
        raise InvalidParams('Invalid params: "arguments" must be an object')
    return arguments


def _resource(registry: Registry, uri: str) -> tuple[Resource | ResourceTemplate, Mapping[str, object]]:
    if (resource := registry.resources.get(uri)) is not None:
        return resource, {}
    for template in registry.templates.values():
        if (variables := template.match(uri)) is not None:
            return template, template.bind(variables)
    raise ResourceNotFound(uri)


async def _run_outside_tools(
    registry: Registry,
    exchange: Exchange,
    runnable: Runnable,
    arguments: Mapping[str, object],
    rendered: Callable[[object], Wire],
) -> Wire:
    journal = open_journal(exchange)
    try:
        return await _run(registry, exchange, runnable, arguments, rendered, journal, _never)
    except ToolError as error:
        raise InternalError(str(error)) from error


async def _run(
    registry: Registry,
    exchange: Exchange,
    runnable: Runnable,
    arguments: Mapping[str, object],
    rendered: Callable[[object], Wire],
    journal: Journal,
    go_on_later: Callable[[Journal, Mapping[str, Question] | None], Awaitable[Wire]],
) -> Wire:
    """Run the function and make a result of how it ended.

    Raises:
        ProtocolError: the function raised one.
        ToolError: the function raised one, failed unexpectedly, ran out of time, or returned what cannot be sent.
    """
    running = Running(
        exchange.call, exchange.collector, journal, exchange.headers, exchange.principal, exchange.invocation
    )
    try:
        match await run(runnable, arguments, running):
            case Done(InputRequired() as required):
                journal.check_ended(runnable.name)
                journal.put(required)
                return input_required(exchange, journal, runnable.name, registry.fingerprint(runnable.digest))
            case Done(value):
                journal.check_ended(runnable.name)
                return guarded(lambda: rendered(value), runnable.name, exchange.reference)
            case Detached():
                return await go_on_later(journal, None)
            case Asked() if not exchange.revision.modern:
                journal.ask_again(runnable.name)
                return await go_on_later(journal, journal.pending)
            case Asked():
                return input_required(exchange, journal, runnable.name, registry.fingerprint(runnable.digest))
            case TimedOut(seconds):
                raise ToolError(_time_is_up(runnable, seconds, exchange))
            case Failed(error):
                raise told(runnable.name, error, exchange.reference)
            case Interrupted():
                raise AssertionError("nobody interrupts a call in place")
    except NonDeterministicTool as error:
        log.error("%s", error)
        raise journal.explained(error, registry.fingerprint(runnable.digest)) from error


async def _never(journal: Journal, asked: Mapping[str, Question] | None) -> Wire:
    raise AssertionError("only tools become long calls")


def _time_is_up(runnable: Runnable, seconds: float, exchange: Exchange) -> str:
    return (
        f"{runnable.name} was stopped after {seconds:.0f} s: {exchange.invocation.limit}. Ask for less in one call; "
        "the server's author can allow more time with long_running=True."
    )
