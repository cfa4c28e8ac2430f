"""FastAPI around the endpoint: an app of its own, or a router for an app that is there already.

The endpoint stays one ASGI callable, so its requests skip FastAPI's dependency machinery, and FastAPI's own error pages
cannot appear under the MCP path.
"""

from typing import Final

from fastapi import APIRouter, FastAPI
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp, Receive, Scope, Send

from mcp_stateless.endpoint import Endpoint
from mcp_stateless.oauth import WELL_KNOWN, metadata_paths
from mcp_stateless.registry import Implementation
from mcp_stateless.settings import Settings

ALL_METHODS: Final[list[str]] = []
"""A route without methods matches every method: the endpoint itself answers 405."""


class _Mounted:
    """An object, since Starlette takes functions and bound methods for `request -> response`."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def create_router(endpoint: Endpoint, settings: Settings, name: str) -> APIRouter:
    """The MCP endpoint, with and without a trailing slash: POST clients do not follow redirects.

    Its metadata is below it as well: at the root of the app there may be that of another endpoint.
    """
    mounted, metadata = _Mounted(endpoint.serve), _Mounted(endpoint.metadata)
    paths = [settings.path, f"{settings.path}/"] if settings.path else ["/"]
    routes: list[BaseRoute] = [
        Route(path, mounted, methods=ALL_METHODS, name=name, include_in_schema=False) for path in paths
    ]
    routes += [
        Route(path, metadata, methods=ALL_METHODS, include_in_schema=False)
        for path in (f"{settings.path}{WELL_KNOWN}", f"{settings.path}{WELL_KNOWN}/")
    ]
    return APIRouter(routes=routes)


def create_app(endpoint: Endpoint, settings: Settings, implementation: Implementation) -> FastAPI:
    """An app that serves the endpoint and the health path, and takes an author's own routes."""
    app = FastAPI(title=implementation.title or implementation.name, version=implementation.version)
    app.router.redirect_slashes = False
    app.include_router(create_router(endpoint, settings, name="mcp"))
    health, metadata = _Mounted(endpoint.health), _Mounted(endpoint.metadata)
    at_root = [path for path in metadata_paths(settings.path) if path != f"{settings.path}{WELL_KNOWN}"]
    documents = {settings.health_path: health, **dict.fromkeys(at_root, metadata)}
    for path, document in documents.items():
        name = "health" if document is health else None
        app.router.routes += [
            Route(spelled, document, methods=ALL_METHODS, name=name, include_in_schema=False)
            for spelled in (path, f"{path}/")
        ]
    return app
