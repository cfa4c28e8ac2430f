"""`MCPServer`: what an author writes against. It puts the parts together and is the one place for lazy imports."""

import logging
import os
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from mcp_stateless.access import set_up_access
from mcp_stateless.calls import tickets
from mcp_stateless.calls.desk import CallDesk
from mcp_stateless.calls.setup import ON_LAMBDA, set_up
from mcp_stateless.calls.worker import Worker
from mcp_stateless.content import Annotations, CacheHint, Icon, ToolAnnotations
from mcp_stateless.context import Context
from mcp_stateless.definitions.completion import CompletionProvider
from mcp_stateless.definitions.prompt import Prompt
from mcp_stateless.definitions.resource import Resource, ResourceTemplate
from mcp_stateless.definitions.tool import DEFAULT_TIMEOUT_S, LongRunning, Tool
from mcp_stateless.definitions.uri_template import is_template
from mcp_stateless.endpoint import Endpoint, StartHook
from mcp_stateless.errors import ConfigurationError
from mcp_stateless.exchange import Environment, random_id
from mcp_stateless.identity import Grants, TokenVerifier, has_scope
from mcp_stateless.methods import CACHEABLE
from mcp_stateless.protocol.sealing import MAKE_A_KEY, MIN_KEY_BYTES, Cipher, KeyRing
from mcp_stateless.registry import Implementation, Registry, Visible
from mcp_stateless.results import ReadyResult
from mcp_stateless.settings import Settings

if TYPE_CHECKING:
    from fastapi import APIRouter, FastAPI
    from mangum.types import ASGI

    from mcp_stateless.aws import LambdaHandler

CHECK_HOLD_S: Final = 15.0
"""How long `check_call` waits for a result before it answers that there is none yet."""

log = logging.getLogger(__name__)

F = TypeVar("F", bound=Callable[..., Any])


class MCPServer:
    """A stateless MCP server: register typed functions, then serve `app()`, `router()` or `endpoint()`.

    Raises:
        ConfigurationError: the name or version is empty, or a setting in the environment does not fit.
    """

    def __init__(
        self,
        name: str,
        version: str = "0.0.0",
        *,
        title: str | None = None,
        description: str | None = None,
        instructions: str | None = None,
        website_url: str | None = None,
        icons: Sequence[Icon] = (),
        cache_hints: Mapping[str, CacheHint] | None = None,
        visible: Visible | None = None,
        token_verifier: TokenVerifier | None = None,
        grants: Grants = has_scope,
        settings: Settings | None = None,
        clock: Callable[[], float] = time.time,
        new_id: Callable[[], str] = random_id,
    ) -> None:
        """`settings`: what holds instead of the environment's `MCP_...` variables.

        `cache_hints`: for lists and other cacheable methods, by method, in place of the settings' times.
        `visible`: which tools, prompts and resources a caller sees; it sees all of them otherwise.
        `token_verifier`: for tokens that are not signed, with `MCP_IDENTITY=bearer`.
        `grants`: whether granted scopes cover a needed one, where scopes have a hierarchy.
        `clock` (seconds since the epoch) and `new_id` (unguessable) are for tests that need to know both.
        """
        if not name or not version:
            raise ConfigurationError("A server needs a name and a version, neither of them empty")
        self.settings = Settings.from_environment(os.environ) if settings is None else settings
        implementation = Implementation(name, version, title, description, website_url, icons)
        unknown = [method for method in cache_hints or () if method not in CACHEABLE]
        if unknown:
            raise ConfigurationError(f"cache_hints takes the methods {', '.join(CACHEABLE)}; {unknown[0]} is none")
        self.registry = Registry(implementation, instructions, cache_hints=cache_hints or {}, visible=visible)
        self._start_hooks: list[StartHook] = []
        self._warned_of_key = False
        keys = _key_ring(self.settings)
        self._worker: Worker | None = None
        self._desk: CallDesk | None = None
        if self.settings.polling != "off":
            self._worker, self._desk = set_up(self.registry, self.settings, keys, clock, new_id)
        environment = Environment(self.settings, keys, clock, new_id, self._desk, grants)
        access = set_up_access(self.settings, token_verifier, grants)
        self._endpoint = Endpoint(self.registry, environment, access, self._start_hooks)

    @property
    def name(self) -> str:
        return self.registry.implementation.name

    def tool(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        *,
        annotations: ToolAnnotations | None = None,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, object] | None = None,
        structured_output: bool | None = None,
        input_schema: Mapping[str, object] | None = None,
        in_thread: bool = True,
        long_running: LongRunning = False,
        timeout_seconds: int = DEFAULT_TIMEOUT_S,
        retries: int = 0,
        requires: Sequence[str] = (),
        asks: bool | None = None,
        detaches: bool | None = None,
        scopes: Sequence[str] = (),
    ) -> Callable[[F], F]:
        """Register a function as a tool. Its parameters become the input schema, its docstring the description.

        `structured_output`: None offers an output schema where the return type can be expressed; True insists on it.
        `input_schema`: shown to clients instead of the generated one, untouched.
        `in_thread`: a `def` runs in a worker thread; False runs it on the event loop's thread, for libraries that are
        bound to one thread, and then no time limit can end it.
        `long_running`: True runs it in a work invocation wherever the client can come back for the result, for at most
        `timeout_seconds`, again up to `retries` times if its worker is lost; "optional" likewise, but never makes a
        2026-07-28 client come back; "task" takes only clients that declare the tasks extension.
        `requires`: client capabilities it cannot do without: "elicitation", "elicitation.url", "sampling", "roots".
        `asks`, `detaches`: whether it may ask the client, and whether it starts in the request until `ctx.detach()`;
        None looks for calls of `ctx.elicit(...)`, `ctx.detach()` and the like in its own code.
        `scopes`: what a caller's token must allow; a call without them is answered 403, with the scopes in a challenge.

        Raises:
            ConfigurationError: the function cannot be called by name with JSON values, or the name is taken.
        """

        def register(fn: F) -> F:
            tool = Tool.from_function(
                fn,
                name=name,
                title=title,
                description=description,
                annotations=annotations,
                icons=icons,
                meta=meta,
                structured_output=structured_output,
                input_schema=input_schema,
                in_thread=in_thread,
                long_running=long_running,
                timeout_seconds=timeout_seconds,
                retries=retries,
                requires=requires,
                asks=asks,
                detaches=detaches,
                scopes=scopes,
            )
            self.registry.add_tool(tool)
            self._offer_check_call()
            return fn

        _refuse_bare_decorator(name, "tool()")
        return register

    def _offer_check_call(self) -> None:
        """The tool by which a call outlives its rounds, once there is a tool that can be long."""
        desk, settings = self._desk, self.settings
        wanted = settings.check_call or settings.state_rounds
        if desk is None or not wanted or not self.registry.has_long_tools or tickets.TOOL in self.registry.tools:
            return

        async def check_call(ticket: str, ctx: Context[None]) -> ReadyResult:
            """Get the result of a call that is still running, by the ticket that it was answered with."""
            remaining_ms = ctx.remaining_time_ms
            longest_s = CHECK_HOLD_S if settings.round_hold_s is None else settings.round_hold_s
            hold_s = longest_s if remaining_ms is None else min(longest_s, max(0, remaining_ms / 1000 - 1))
            return ReadyResult(await tickets.check(desk, ticket, ctx.principal, hold_s))

        self.registry.own_tools.add(tickets.TOOL)
        self.registry.add_tool(Tool.from_function(check_call, structured_output=False))

    def resource(
        self,
        uri: str,
        *,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Icon] = (),
        annotations: Annotations | None = None,
        meta: Mapping[str, object] | None = None,
        size: int | None = None,
        in_thread: bool = True,
        cache_hint: CacheHint | None = None,
    ) -> Callable[[F], F]:
        """Register a function as a resource, or as a resource template when `uri` holds RFC 6570 variables.

        `size`: bytes of the raw content, before base64; for resources only.

        Raises:
            ConfigurationError: variables and parameters differ, the template cannot be matched, or the URI is taken.
        """

        def register(fn: F) -> F:
            shared: dict[str, Any] = {
                "name": name,
                "title": title,
                "description": description,
                "mime_type": mime_type,
                "icons": icons,
                "annotations": annotations,
                "meta": meta,
                "in_thread": in_thread,
                "cache_hint": cache_hint,
            }
            if is_template(uri):
                self.registry.add_template(ResourceTemplate.from_function(fn, uri_template=uri, **shared))
            else:
                self.registry.add_resource(Resource.from_function(fn, uri=uri, size=size, **shared))
            return fn

        _refuse_bare_decorator(uri, 'resource("scheme://...")')
        return register

    def prompt(
        self,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        *,
        icons: Sequence[Icon] = (),
        meta: Mapping[str, object] | None = None,
        in_thread: bool = True,
    ) -> Callable[[F], F]:
        """Register a function that returns a prompt's messages: text, `Message` objects, content, or a list of these.

        Raises:
            ConfigurationError: the function cannot be called by name with text values, or the name is taken.
        """

        def register(fn: F) -> F:
            prompt = Prompt.from_function(
                fn, name=name, title=title, description=description, icons=icons, meta=meta, in_thread=in_thread
            )
            self.registry.add_prompt(prompt)
            return fn

        _refuse_bare_decorator(name, "prompt()")
        return register

    def completion(self) -> Callable[[F], F]:
        """Register the function that completes arguments of prompts and resource templates.

        It takes `(ref, argument, context)` and returns a `Completion`, a list of strings, or None.

        Raises:
            ConfigurationError: the server has such a function already.
        """

        def register(fn: F) -> F:
            self.registry.set_completion(CompletionProvider.from_function(fn))
            return fn

        return register

    def on_start(self, hook: F) -> F:
        """Register a function without arguments that runs once in each execution environment, before its first call.

        There is no counterpart at the end: Lambda freezes and drops environments without telling them.
        """
        self._start_hooks.append(hook)
        return hook

    def endpoint(self) -> Endpoint:
        """The server as a plain ASGI application, without FastAPI."""
        self._check_ready()
        return self._endpoint

    def router(self) -> "APIRouter":
        """The MCP endpoint as a router for a FastAPI app of your own; several servers fit into one app."""
        from mcp_stateless.http import create_router

        self._check_ready()
        return create_router(self._endpoint, self.settings, name=self.name)

    def app(self) -> "FastAPI":
        """A FastAPI app that serves the MCP endpoint and the health path; add routes as you like."""
        from mcp_stateless.http import create_app

        self._check_ready()
        return create_app(self._endpoint, self.settings, self.registry.implementation)

    def lambda_handler(self, app: "ASGI | None" = None) -> "LambdaHandler":
        """The function to name in a Lambda's `Handler`: `app` behind Mangum, by default the endpoint alone."""
        from mcp_stateless.aws import LambdaHandler
        from mcp_stateless.work_events import work_rows

        self._check_ready()
        rows = () if self._worker is None or self._desk is None else work_rows(self._worker, self._desk, self._endpoint)
        return LambdaHandler(self._endpoint if app is None else app, self.settings, rows=rows)

    def _check_ready(self) -> None:
        """What can only be said once everything is registered, and has to be said before the first call."""
        scoped = next((tool.name for tool in self.registry.tools.values() if tool.scopes), None)
        if scoped is not None and self.settings.identity == "none":
            log.warning("%s needs scopes, and nobody has any where MCP_IDENTITY is none: its calls are refused", scoped)
        asking = self.registry.asking()
        if self.settings.signing_keys or not (asking or self._desk):
            return
        if ON_LAMBDA in os.environ:
            raise ConfigurationError(
                f"{asking[0]} asks the client, and on Lambda that needs a signing key that all environments share. "
                f"Set MCP_SIGNING_KEYS to one; make it with: {MAKE_A_KEY}"
            )
        if not self._warned_of_key:
            self._warned_of_key = True
            log.warning("A signing key was made for this process only; on Lambda, set MCP_SIGNING_KEYS")


def _refuse_bare_decorator(first_argument: object, usage: str) -> None:
    if callable(first_argument):
        raise ConfigurationError(f"Write @server.{usage} with parentheses; it was used without them")


def _key_ring(settings: Settings) -> KeyRing | None:
    """The configured keys. Without any, one is made where there is one process only, which Lambda never promises."""
    keys = tuple(key.get_secret_value().encode() for key in settings.signing_keys)
    if not keys and ON_LAMBDA in os.environ:
        return None
    return KeyRing(keys or (secrets.token_bytes(MIN_KEY_BYTES),), _cipher() if settings.encrypt_state else None)


def _cipher() -> Cipher:
    try:
        from mcp_stateless.encryption import AesGcm
    except ImportError as error:
        raise ConfigurationError(
            "MCP_ENCRYPT_STATE needs the extra `encryption`: pip install 'mcp-stateless[encryption]'"
        ) from error
    return AesGcm()
