"""Verification of signed tokens: access tokens of configured issuers, and the identity an ALB passes on.

Needs the extra `auth`; imported only where the settings ask for it. Keys come from places that the settings name, never
from a token: `jku`, `x5u`, `x5c` and `jwk` in a token's header mean nothing here.
"""

import asyncio
import json
import logging
import re
import threading
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

import jwt
from jwt import PyJWK, PyJWKSet, PyJWTError

from mcp_stateless.errors import ConfigurationError, Unauthorized
from mcp_stateless.identity import from_claims
from mcp_stateless.invocation import Invocation
from mcp_stateless.principal import Principal

if TYPE_CHECKING:
    from jwt.types import Options

LEEWAY_S: Final = 30
"""What clocks may differ."""

REFRESH_S: Final = 60
"""Keys are fetched again for an unknown key id, but not more often than this, whatever tokens come."""

FETCH_TIMEOUT_S: Final = 5
MAX_DOCUMENT_BYTES: Final = 512 * 1024

MAX_AGE_S: Final = 600
"""Keys are fetched again after this: an issuer that takes a key back is heard."""

THIS_MACHINE: Final = ("127.0.0.1", "localhost", "::1")

ALB_HEADER: Final = "x-amzn-oidc-data"
_UUID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

UNREADABLE: Final = (PyJWTError, ValueError, RecursionError)
"""What a token that is none makes its parsers raise; JSON nested too deeply exhausts the stack."""

Fetch = Callable[[str], bytes]

log = logging.getLogger(__name__)


def fetch(url: str) -> bytes:
    """A document of an issuer, at most `MAX_DOCUMENT_BYTES` of it; over https, or from this machine.

    Raises:
        OSError: it cannot be had.
    """
    parts = urlsplit(url)
    if parts.scheme != "https" and not (parts.scheme == "http" and parts.hostname in THIS_MACHINE):
        raise OSError(f"{url} is not https")
    until, body = time.monotonic() + FETCH_TIMEOUT_S, b""
    with _OPENER.open(url, timeout=FETCH_TIMEOUT_S) as response:
        while chunk := response.read1(MAX_DOCUMENT_BYTES + 1):
            body += chunk
            if len(body) > MAX_DOCUMENT_BYTES:
                raise OSError(f"{url} is larger than {MAX_DOCUMENT_BYTES} bytes")
            if time.monotonic() > until:
                raise OSError(f"{url} took longer than {FETCH_TIMEOUT_S} s")
    return body


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would lead from the place that the settings name to one that they do not."""

    def redirect_request(self, *args: object) -> None:
        return None


_OPENER: Final = urllib.request.build_opener(_NoRedirect)


class Keys:
    """The public keys of one issuer, kept while the process is warm."""

    def __init__(self, issuer: str, jwks_url: str, get: Fetch, clock: Callable[[], float]) -> None:
        self._issuer = issuer
        self._jwks_url = jwks_url
        self._get = get
        self._clock = clock
        self._keys: Mapping[str | None, PyJWK] = {}
        self._fetched_at = self._tried_at = float("-inf")
        self._fetching = threading.Lock()

    async def find(self, key_id: str | None) -> PyJWK:
        """The key of that id; an unknown one is looked for again, once in a while."""
        if key_id not in self._keys or self._clock() - self._fetched_at >= MAX_AGE_S:
            await asyncio.to_thread(self._refresh, key_id)
        if key_id not in self._keys:
            raise Unauthorized("signed with a key that its issuer does not publish, as far as is known")
        return self._keys[key_id]

    def _refresh(self, key_id: str | None) -> None:
        """Fetch the keys, unless that was tried just now. Requests at the same time wait for the one that fetches."""
        with self._fetching:
            now = self._clock()
            is_due = key_id not in self._keys or now - self._fetched_at >= MAX_AGE_S
            if not is_due or now - self._tried_at < REFRESH_S:
                return
            self._tried_at = now
            try:
                self._keys, self._fetched_at = self._load(), now
            except (OSError, HTTPException, TypeError, *UNREADABLE) as error:
                # The keys that are there still hold: an issuer that is down keeps nobody out who was in.
                log.error("the keys of %s cannot be had: %s", self._issuer, error)

    def _load(self) -> Mapping[str | None, PyJWK]:
        url = self._jwks_url or self._discovered()
        document = json.loads(self._get(url))
        published = document.get("keys") if isinstance(document, dict) else None
        if not isinstance(published, list) or not all(isinstance(key, dict) for key in published):
            raise ValueError(f"{url} is no key set")
        return {key.key_id: key for key in PyJWKSet(published).keys if key.public_key_use in (None, "sig")}

    def _discovered(self) -> str:
        """From the issuer's metadata: OpenID Connect's place, then RFC 8414's."""
        parts = urlsplit(self._issuer)
        origin, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
        places = (
            f"{origin}{path}/.well-known/openid-configuration",
            f"{origin}/.well-known/oauth-authorization-server{path}",
        )
        for place in places:
            try:
                document = json.loads(self._get(place))
            except (OSError, HTTPException, ValueError, RecursionError) as error:
                log.info("no metadata at %s: %s", place, error)
                continue
            if isinstance(document, dict) and document.get("issuer") == self._issuer and "jwks_uri" in document:
                return str(document["jwks_uri"])
        raise OSError("its metadata does not say where they are; set MCP_JWKS_URL")


class JwtVerifier:
    """A `TokenVerifier` for signed access tokens of configured issuers."""

    def __init__(
        self,
        issuers: Sequence[str],
        algorithms: Sequence[str],
        *,
        jwks_url: str = "",
        get: Fetch = fetch,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """Raises ConfigurationError for no issuer, a shared-secret algorithm, or one key set for several issuers."""
        if not issuers:
            raise ConfigurationError("MCP_IDENTITY=bearer needs MCP_AUTHORIZATION_SERVERS, the issuers of its tokens")
        if any(name == "none" or name.startswith("HS") for name in algorithms):
            raise ConfigurationError("MCP_TOKEN_ALGORITHMS takes algorithms with a public key, such as RS256 and ES256")
        if jwks_url and len(issuers) > 1:
            raise ConfigurationError("MCP_JWKS_URL is for one issuer; leave it out, and each issuer's own is found")
        self._algorithms = tuple(algorithms)
        self._clock = clock
        self._keys = {issuer: Keys(issuer, jwks_url, get, clock) for issuer in issuers}

    async def verify(self, token: str, audience: str) -> Principal:
        try:
            header = jwt.get_unverified_header(token)
            issuer = jwt.decode(token, options={"verify_signature": False}).get("iss")
        except UNREADABLE as error:
            raise Unauthorized(f"not a signed token: {error}") from error
        if header.get("alg") not in self._algorithms:
            raise Unauthorized("signed with an algorithm that is not allowed")
        if not isinstance(issuer, str) or issuer not in self._keys:
            raise Unauthorized("issued by somebody else")
        key = await self._keys[issuer].find(header.get("kid"))
        claims = _verified(token, key.key, str(header["alg"]), self._clock(), issuer=issuer, audience=audience)
        principal = from_claims(claims)
        if principal is None:
            raise Unauthorized("names no subject")
        return principal


class FromAlb:
    """The user that an Application Load Balancer logged in, as it says in a signed header of its own."""

    def __init__(self, signer: str, region: str, *, get: Fetch = fetch, clock: Callable[[], float] = time.time) -> None:
        if not signer or not region:
            raise ConfigurationError("MCP_IDENTITY=alb needs the load balancer's MCP_ALB_ARN and MCP_ALB_REGION")
        self._signer = signer
        self._region = region
        self._get = get
        self._clock = clock
        self._keys: dict[str, str] = {}

    async def __call__(self, headers: Mapping[str, str], invocation: Invocation, audience: str) -> Principal:
        token = headers.get(ALB_HEADER)
        if token is None:
            raise Unauthorized("the load balancer named no user", was_sent=False)
        try:
            header = jwt.get_unverified_header(token)
        except UNREADABLE as error:
            raise Unauthorized(f"not a signed token: {error}") from error
        if header.get("signer") != self._signer or header.get("alg") != "ES256":
            raise Unauthorized("not signed by the configured load balancer")
        key = await self._key(header.get("kid"))
        # The load balancer says in the header, which is signed too, what the claims of the user may not.
        said = {"iss": header.get("iss"), "exp": header.get("exp"), "client_id": header.get("client")}
        principal = from_claims(_verified(token, key, "ES256", self._clock(), defaults=said))
        if principal is None:
            raise Unauthorized("names no user")
        return principal

    async def _key(self, key_id: object) -> str:
        # The id becomes part of a URL, so it has to be what AWS makes.
        if not isinstance(key_id, str) or not _UUID.fullmatch(key_id):
            raise Unauthorized("its key id is no UUID")
        if key_id not in self._keys:
            url = f"https://public-keys.auth.elb.{self._region}.amazonaws.com/{key_id}"
            try:
                self._keys[key_id] = (await asyncio.to_thread(self._get, url)).decode()
            except (OSError, HTTPException, ValueError) as error:
                raise Unauthorized(f"the load balancer's key cannot be had: {error}") from error
        return self._keys[key_id]


def _verified(
    token: str,
    key: Any,
    algorithm: str,
    now: float,
    *,
    issuer: str | None = None,
    audience: str | None = None,
    defaults: Mapping[str, Any] | None = None,
) -> Mapping[str, Any]:
    """The claims of a token whose signature, issuer, audience and times hold; times by the injected clock."""
    options: Options = {
        "verify_exp": False,
        "verify_nbf": False,
        "verify_iat": False,
        "verify_aud": audience is not None,
    }
    try:
        signed: dict[str, Any] = jwt.decode(
            token, key, algorithms=[algorithm], issuer=issuer, audience=audience, options=options
        )
    except (*UNREADABLE, TypeError) as error:
        raise Unauthorized(f"does not hold: {error}") from error
    claims = {**(defaults or {}), **signed}
    expires, starts = claims.get("exp"), claims.get("nbf", 0)
    # Written so that what compares with nothing, NaN, does not pass.
    if not isinstance(expires, int | float) or not now < expires + LEEWAY_S:
        raise Unauthorized("has expired, or never does")
    if not isinstance(starts, int | float) or not now >= starts - LEEWAY_S:
        raise Unauthorized("is not valid yet")
    return claims
