"""Who may use the endpoint: the configured source of identity, the scopes every request needs, and the challenges."""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

from mcp_stateless.errors import ConfigurationError, InsufficientScope, Unauthorized
from mcp_stateless.identity import (
    EVENT_SOURCES,
    FromBearer,
    FromEvent,
    Grants,
    Identify,
    Nobody,
    TokenVerifier,
    check_scopes,
    has_scope,
)
from mcp_stateless.invocation import Invocation
from mcp_stateless.oauth import ProtectedResource
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.revisions import Wire
from mcp_stateless.settings import PREFIX, Settings

UNAUTHORIZED: Final = "Unauthorized"
ONLY_WITH_IDENTITY: Final = ("authorization_servers", "required_scopes", "audience", "jwks_url", "alb_arn")
"""Settings by which an operator means to keep somebody out."""

FORBIDDEN: Final = "Forbidden: the token lacks a scope"

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Access:
    """The gate in front of everything but preflights, health and metadata."""

    settings: Settings
    identify: Identify
    grants: Grants = has_scope

    @property
    def is_protected_resource(self) -> bool:
        """Whether clients log in themselves, so that there is metadata for them. An open server has none."""
        return bool(self.settings.authorization_servers) and self.settings.identity in ("bearer", "jwt_authorizer")

    async def principal(self, headers: Mapping[str, str], invocation: Invocation, prefix: str) -> Principal:
        """The caller.

        Raises:
            Unauthorized: it is not proved who that is.
            InsufficientScope: it is, and lacks a scope that every request needs.
        """
        if self.settings.identity == "none":
            return await self.identify(headers, invocation, "")
        audience = self.settings.audience or (
            self.resource(invocation, prefix).url if self.settings.identity == "bearer" else ""
        )
        principal = await self.identify(headers, invocation, audience)
        if principal.is_anonymous:
            raise Unauthorized("nobody is named")
        check_scopes(principal, frozenset(self.settings.required_scopes), self.grants)
        return principal

    def resource(self, invocation: Invocation, prefix: str) -> ProtectedResource:
        """The endpoint as its clients know it.

        Raises:
            ConfigurationError: nothing trustworthy says under which URL that is.
        """
        settings = self.settings
        url = settings.public_url
        if not url:
            context = (invocation.event or {}).get("requestContext")
            domain = context.get("domainName") if isinstance(context, Mapping) else None
            if not isinstance(domain, str):
                raise ConfigurationError(
                    "Set MCP_PUBLIC_URL to the endpoint's URL: a request's own host proves nothing"
                )
            url = f"https://{domain}{quote(prefix)}{settings.path}"
        return ProtectedResource(
            url=url,
            authorization_servers=settings.authorization_servers,
            scopes_supported=settings.scopes_supported or settings.required_scopes,
            path=settings.path,
        )

    def metadata(self, invocation: Invocation, prefix: str) -> Wire | None:
        """Protected resource metadata; None for a server that has none to give."""
        return self.resource(invocation, prefix).metadata() if self.is_protected_resource else None

    def challenge(
        self, error: Unauthorized | InsufficientScope, invocation: Invocation, prefix: str
    ) -> Mapping[str, str]:
        """The headers of a 401 or 403. Where clients cannot log in themselves, they are told nothing."""
        if not self.is_protected_resource:
            return {}
        resource = self.resource(invocation, prefix)
        if isinstance(error, InsufficientScope):
            # A client asks for just these, and the next request needs the required ones as well.
            scopes = dict.fromkeys((*self.settings.required_scopes, *error.scopes))
            value = resource.challenge(error="insufficient_scope", scopes=scopes)
        else:
            code = "invalid_token" if error.was_sent else None
            value = resource.challenge(error=code, scopes=self.settings.required_scopes)
        return {"www-authenticate": value}


def set_up_access(settings: Settings, verifier: TokenVerifier | None, grants: Grants) -> Access:
    """The gate that the settings describe.

    Raises:
        ConfigurationError: the source of identity cannot work with them.
    """
    if verifier is not None and settings.identity != "bearer":
        raise ConfigurationError("A token_verifier is used with MCP_IDENTITY=bearer")
    meant = [name for name in ONLY_WITH_IDENTITY if settings.identity == "none" and getattr(settings, name)]
    if meant:
        raise ConfigurationError(
            f"{PREFIX}{meant[0].upper()} protects nothing while {PREFIX}IDENTITY is none; set it to bearer, or to the "
            "authorizer in front"
        )
    return Access(settings, _identify(settings, verifier), grants)


def _identify(settings: Settings, verifier: TokenVerifier | None) -> Identify:
    if settings.identity == "none":
        return Nobody()
    if settings.identity in EVENT_SOURCES:
        return FromEvent(settings.identity, settings.subject_key)
    if verifier is not None:
        return FromBearer(verifier)
    try:
        from mcp_stateless.tokens import FromAlb, JwtVerifier
    except ImportError as error:
        raise ConfigurationError(
            f"MCP_IDENTITY={settings.identity} needs the extra `auth`: pip install 'mcp-stateless[auth]'"
        ) from error
    if settings.identity == "alb":
        return FromAlb(settings.alb_arn, settings.alb_region)
    return FromBearer(
        JwtVerifier(settings.authorization_servers, settings.token_algorithms, jwks_url=settings.jwks_url)
    )
