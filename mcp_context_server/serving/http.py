"""The web application: streamable HTTP at /mcp, SSE at /sse, and a page for people at /."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from mcp.server import MCPServer
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.middleware.cors import CORSMiddleware
from starlette.routing import BaseRoute, Mount, Route
from starlette.types import ASGIApp

from mcp_context_server.ports import SessionStore
from mcp_context_server.serving.closing import Closing
from mcp_context_server.serving.endpoints import (
    ServerSentEvents,
    Streamable,
    health,
    page,
    readiness,
)
from mcp_context_server.serving.passing import Origins, Traffic, security_of
from mcp_context_server.settings import Settings


def build_app(
    server: MCPServer[Any],
    store: SessionStore,
    closing: Closing,
    settings: Settings,
    verifier: TokenVerifier | None,
) -> Starlette:
    """The web application: what is where, and what every request passes on its way there."""
    security = security_of(settings)
    guarded = _guarding(settings, verifier)
    routes: list[BaseRoute] = [
        Route("/", page),
        Route("/healthz", health),
        Route("/readyz", readiness(store, closing)),
    ]
    lifespan = None
    if settings.transport in ("http", "all"):
        streamable = Streamable(server, settings.max_request_bytes)
        routes.append(Route("/mcp", guarded(streamable)))
        lifespan = streamable.lifespan
    if settings.transport in ("sse", "all"):
        sse = ServerSentEvents(server, closing, settings.max_request_bytes)
        routes.append(Route("/sse", guarded(sse), methods=["GET"]))
        routes.append(Mount("/messages", guarded(sse.take)))
    if resource := _resource(settings):
        issuer, scopes = _url(settings.auth_issuer), list(settings.auth_scopes) or None
        routes += create_protected_resource_routes(resource, [issuer], scopes)
    return Starlette(
        routes=routes,
        middleware=_passed(settings, security, closing, verifier),
        lifespan=lifespan,
    )


def _passed(
    settings: Settings,
    security: TransportSecuritySettings,
    closing: Closing,
    verifier: TokenVerifier | None,
) -> Sequence[Middleware]:
    """What every request passes, in this order."""
    passed = [Middleware(Traffic, closing=closing), Middleware(Origins, security=security)]
    if settings.allowed_origins:
        passed.append(
            Middleware(
                CORSMiddleware,
                allow_origins=settings.allowed_origins,
                allow_methods=["GET", "POST", "DELETE"],
                allow_headers=["*"],
                expose_headers=["mcp-session-id", "www-authenticate"],
            )
        )
    if verifier is not None:
        backend = BearerAuthBackend(verifier)
        passed.append(Middleware(AuthenticationMiddleware, backend=backend))
        passed.append(Middleware(AuthContextMiddleware))
    return passed


def _guarding(settings: Settings, verifier: TokenVerifier | None) -> Callable[[ASGIApp], ASGIApp]:
    """What makes an endpoint ask for a token, where there are any."""
    if verifier is None:
        return lambda app: app
    resource = _resource(settings)
    metadata = build_resource_metadata_url(resource) if resource else None
    return lambda app: RequireAuthMiddleware(app, list(settings.auth_scopes), metadata)


def _resource(settings: Settings) -> AnyHttpUrl | None:
    """What tokens of the authorization server are made for, where there is one."""
    return _url(settings.auth_resource) if settings.auth_issuer else None


def _url(text: str) -> AnyHttpUrl:
    """The URL as it is written: clients compare it letter by letter."""
    as_written = ConfigDict(url_preserve_empty_path=True)
    return TypeAdapter(AnyHttpUrl, config=as_written).validate_python(text)
