"""Who is calling: from what AWS put into the event, or from a token that is verified here.

The source is a setting, and nothing else is looked at: an identity in a header or event field that the configured
source does not own is the client's word. A caller that the source does not name is refused, never taken for anonymous.
"""

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, Protocol, TypeAlias

from typing_extensions import TypeIs

from mcp_stateless.errors import InsufficientScope, Unauthorized
from mcp_stateless.invocation import Invocation
from mcp_stateless.principal import ANONYMOUS, Principal

MAX_TOKEN_BYTES: Final = 16 * 1024
"""Longer tokens are refused unread; API Gateway's quota for all headers is 10,240 bytes."""

log = logging.getLogger(__name__)

Grants: TypeAlias = Callable[[frozenset[str], str], bool]
"""Whether granted scopes cover a needed one: where scopes have a hierarchy, it is in here."""

Claims: TypeAlias = Mapping[str, Any]


class TokenVerifier(Protocol):
    """Says whom a bearer token speaks for: by its signature, or by asking whoever issued it."""

    async def verify(self, token: str, audience: str) -> Principal:
        """The caller.

        Raises:
            Unauthorized: the token is not good, or is not for this audience. The text is for the log.
        """


class Identify(Protocol):
    """Names the caller of one request."""

    async def __call__(self, headers: Mapping[str, str], invocation: Invocation, audience: str) -> Principal:
        """Raises `Unauthorized`."""


class Nobody:
    """Every caller is anonymous."""

    async def __call__(self, headers: Mapping[str, str], invocation: Invocation, audience: str) -> Principal:
        return ANONYMOUS


class FromEvent:
    """The caller as an authorizer of AWS named it in the event's `requestContext`."""

    def __init__(self, source: str, subject_key: str) -> None:
        self._read = EVENT_SOURCES[source]
        self._subject_key = subject_key

    async def __call__(self, headers: Mapping[str, str], invocation: Invocation, audience: str) -> Principal:
        context = (invocation.event or {}).get("requestContext")
        principal = self._read(context, self._subject_key) if isinstance(context, Mapping) else None
        if principal is None:
            raise Unauthorized("the event names no caller: is the authorizer of MCP_IDENTITY on this route?")
        return principal


class FromBearer:
    """The caller that a bearer token speaks for. Tokens are only taken from the `Authorization` header."""

    def __init__(self, verifier: TokenVerifier) -> None:
        self._verifier = verifier

    async def __call__(self, headers: Mapping[str, str], invocation: Invocation, audience: str) -> Principal:
        scheme, _, token = headers.get("authorization", "").partition(" ")
        if scheme.lower() != "bearer":
            raise Unauthorized("no bearer token", was_sent=False)
        if len(token) > MAX_TOKEN_BYTES:
            raise Unauthorized("the token is too long")
        return await self._verifier.verify(token.strip(), audience)


def check_scopes(principal: Principal, needed: frozenset[str], grants: Grants) -> None:
    """Raises `InsufficientScope`, which names all that the operation needs."""
    if not all(grants(principal.scopes, scope) for scope in needed):
        raise InsufficientScope(sorted(needed))


def has_scope(granted: frozenset[str], scope: str) -> bool:
    """Scopes without a hierarchy."""
    return scope in granted


def from_claims(claims: Claims, scopes: object = None) -> Principal | None:
    """The caller of a verified token."""
    issuer, subject = claims.get("iss"), claims.get("sub")
    if not _is_name(issuer) or not _is_name(subject):
        return None
    client = claims.get("client_id", claims.get("azp"))
    return Principal(
        issuer=issuer,
        subject=subject,
        client_id=client if isinstance(client, str) else None,
        scopes=_scopes(scopes or claims.get("scope") or claims.get("scp")),
        claims=claims,
    )


def _jwt_authorizer(context: Mapping[str, Any], subject_key: str) -> Principal | None:
    """HTTP API, JWT authorizer: `authorizer.jwt`; in payload 1.0, `authorizer` itself.

    What is called `scopes` beside the claims is not read: a token needs only one of a route's scopes to pass.
    """
    authorizer = context.get("authorizer")
    claims = _mapping(_mapping(authorizer, "jwt") or authorizer, "claims")
    listed = claims.get("scp")
    if isinstance(listed, str) and listed.startswith("[") and listed.endswith("]"):
        # API Gateway makes text of every claim, of a list this: [a b].
        listed = listed[1:-1]
    return from_claims(claims, claims.get("scope") or listed)


def _cognito_authorizer(context: Mapping[str, Any], subject_key: str) -> Principal | None:
    """REST API, Cognito authorizer: `authorizer.claims`."""
    return from_claims(_mapping(context.get("authorizer"), "claims"))


def _lambda_authorizer(context: Mapping[str, Any], subject_key: str) -> Principal | None:
    """Lambda authorizer: its context is `authorizer.lambda` on HTTP APIs, and `authorizer` itself on REST APIs."""
    authorizer = context.get("authorizer")
    values = _mapping(authorizer, "lambda") or _mapping({"": authorizer}, "")
    subject = values.get(subject_key) or values.get("principalId")
    if not _is_name(subject):
        return None
    client = values.get("client_id")
    return Principal(
        issuer=str(values.get("iss") or "lambda-authorizer"),
        subject=subject,
        client_id=client if isinstance(client, str) else None,
        scopes=_scopes(values.get("scope")),
        claims=values,
    )


def _iam(context: Mapping[str, Any], subject_key: str) -> Principal | None:
    """IAM: `authorizer.iam` on HTTP APIs and Function URLs, `identity` on REST APIs."""
    iam = _mapping(context.get("authorizer"), "iam") or _mapping(context, "identity")
    arn = iam.get("userArn")
    if not _is_name(arn):
        return None
    account = iam.get("accountId")
    return Principal(issuer="aws-iam", subject=arn, claims={"account": account, "user": iam.get("userId")})


EVENT_SOURCES: Final[Mapping[str, Callable[[Mapping[str, Any], str], Principal | None]]] = {
    "jwt_authorizer": _jwt_authorizer,
    "cognito_authorizer": _cognito_authorizer,
    "lambda_authorizer": _lambda_authorizer,
    "iam": _iam,
}
"""Where each authorizer leaves its word (API Gateway and Lambda, event formats)."""


def _is_name(value: object) -> TypeIs[str]:
    """Whether it can name somebody. Lone surrogates cannot be encoded, so nothing could be bound to them."""
    return isinstance(value, str) and value != "" and value == value.encode("utf-8", "replace").decode()


def _mapping(values: object, key: str) -> Mapping[str, Any]:
    found = values.get(key) if isinstance(values, Mapping) else None
    return found if isinstance(found, Mapping) else {}


def _scopes(value: object) -> frozenset[str]:
    if isinstance(value, str):
        return frozenset(value.split())
    return (
        frozenset(item for item in value if isinstance(item, str)) if isinstance(value, list | tuple) else frozenset()
    )
