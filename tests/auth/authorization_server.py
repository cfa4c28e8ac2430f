"""A small OAuth 2.1 authorization server on loopback: discovery, registration, and the code grant with PKCE."""

import base64
import hashlib
import json
import secrets
import time
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler
from typing import Any, Final
from urllib.parse import parse_qs, urlencode, urlsplit

import jwt

from mcp_stateless.testing.local_server import LocalServer
from tests.auth.issuer import Key

LIFETIME_S: Final = 300

Fields = Mapping[str, str]
Reply = tuple[int, Mapping[str, str], Mapping[str, Any]]


class Denied(Exception):
    """The request is answered 400 with this error code."""


class AuthorizationServer(LocalServer):
    """Everybody who asks is `subject`, and is given the scopes that were asked for."""

    def __init__(self, subject: str = "alice") -> None:
        super().__init__(_handler(self))
        self.subject = subject
        self.key = Key("signing")
        self.log: list[str] = []
        """What was done, in order; authorizations with their scopes."""
        self.clients: dict[str, Mapping[str, Any]] = {}
        self.codes: dict[str, Fields] = {}

    @property
    def issuer(self) -> str:
        return self.url

    def get(self, path: str, fields: Fields) -> Reply:
        match path:
            case "/.well-known/oauth-authorization-server":
                return 200, {}, self._metadata()
            case "/keys":
                self.log.append("keys")
                return 200, {}, {"keys": [self.key.jwk]}
            case "/authorize":
                return self._authorize(fields)
        return 404, {}, {}

    def post(self, path: str, body: bytes) -> Reply:
        match path:
            case "/register":
                self.log.append("register")
                client = {**json.loads(body), "client_id": secrets.token_urlsafe(8)}
                self.clients[client["client_id"]] = client
                return 201, {}, client
            case "/token":
                return self._token({name: values[0] for name, values in parse_qs(body.decode()).items()})
        return 404, {}, {}

    def _metadata(self) -> Mapping[str, Any]:
        return {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.issuer}/authorize",
            "token_endpoint": f"{self.issuer}/token",
            "registration_endpoint": f"{self.issuer}/register",
            "jwks_uri": f"{self.issuer}/keys",
            "response_types_supported": ["code"],
            "grant_types_supported": ["authorization_code"],
            "code_challenge_methods_supported": ["S256"],
            "token_endpoint_auth_methods_supported": ["none"],
        }

    def _authorize(self, fields: Fields) -> Reply:
        client = self.clients.get(fields["client_id"])
        if client is None or fields["redirect_uri"] not in client["redirect_uris"]:
            raise Denied("invalid_client")
        if fields["response_type"] != "code" or fields["code_challenge_method"] != "S256" or not fields["resource"]:
            raise Denied("invalid_request")
        self.log.append(f"authorize {fields.get('scope', '')}".strip())
        code = secrets.token_urlsafe(16)
        self.codes[code] = fields
        answer = {"code": code, "state": fields["state"], "iss": self.issuer}
        return 302, {"location": f"{fields['redirect_uri']}?{urlencode(answer)}"}, {}

    def _token(self, fields: Fields) -> Reply:
        asked = self.codes.pop(fields.get("code", ""), None)
        if asked is None or any(fields[name] != asked[name] for name in ("client_id", "redirect_uri", "resource")):
            raise Denied("invalid_grant")
        digest = hashlib.sha256(fields["code_verifier"].encode()).digest()
        if base64.urlsafe_b64encode(digest).rstrip(b"=").decode() != asked["code_challenge"]:
            raise Denied("invalid_grant")
        self.log.append("token")
        claims = {
            "iss": self.issuer,
            "sub": self.subject,
            "aud": asked["resource"],
            "exp": int(time.time()) + LIFETIME_S,
            "client_id": asked["client_id"],
            "scope": asked.get("scope", ""),
        }
        token = jwt.encode(claims, self.key.private, "ES256", {"kid": self.key.id, "typ": "at+jwt"})
        return (
            200,
            {},
            {"access_token": token, "token_type": "Bearer", "expires_in": LIFETIME_S, "scope": claims["scope"]},
        )


def _handler(owner: AuthorizationServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            fields = {name: values[0] for name, values in parse_qs(parts.query).items()}
            self._answer(lambda: owner.get(parts.path, fields))

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            self._answer(lambda: owner.post(self.path, body))

        def _answer(self, ask: Any) -> None:
            try:
                status, headers, document = ask()
            except (Denied, KeyError) as error:
                status, headers, document = 400, {}, {"error": str(error)}
            body = json.dumps(document).encode()
            self.send_response(status)
            for name, value in {**headers, "content-type": "application/json", "content-length": len(body)}.items():
                self.send_header(name, str(value))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Stay quiet: what was done is in `log`."""

    return Handler
