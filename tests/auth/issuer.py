"""An issuer of tokens without a network: its keys, what it publishes, and tokens with any defect."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import jwt
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from jwt.algorithms import ECAlgorithm

from mcp_stateless import MCPServer, Settings
from mcp_stateless.testing.events import API_DOMAIN
from mcp_stateless.tokens import JwtVerifier

ISSUER: Final = "https://issuer.example"
AUDIENCE: Final = f"https://{API_DOMAIN}/mcp"
NOW: Final = 1_800_000_000.0
ALGORITHMS: Final = ("RS256", "ES256", "PS256", "EdDSA")


@dataclass(slots=True)
class Clock:
    """Seconds since the epoch; stands still unless a test moves it."""

    now: float = NOW

    def __call__(self) -> float:
        return self.now


@dataclass(slots=True)
class Key:
    """A signing key and the id it is published under."""

    id: str
    private: ec.EllipticCurvePrivateKey = field(default_factory=lambda: ec.generate_private_key(ec.SECP256R1()))

    @property
    def jwk(self) -> dict[str, Any]:
        public: dict[str, Any] = ECAlgorithm.to_jwk(self.private.public_key(), as_dict=True)
        return {**public, "kid": self.id, "use": "sig", "alg": "ES256"}

    @property
    def pem(self) -> bytes:
        return self.private.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


class Issuer:
    """Publishes `keys` and signs with the first of them; `asked` are the URLs that were fetched."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.keys = [Key("first")]
        self.asked: list[str] = []
        self.is_down = False

    def get(self, url: str) -> bytes:
        self.asked.append(url)
        if self.is_down:
            raise OSError("nobody is there")
        if url == f"{ISSUER}/.well-known/openid-configuration":
            return json.dumps({"issuer": ISSUER, "jwks_uri": f"{ISSUER}/keys"}).encode()
        assert url == f"{ISSUER}/keys", url
        return json.dumps({"keys": [key.jwk for key in self.keys]}).encode()

    @property
    def key_fetches(self) -> int:
        return self.asked.count(f"{ISSUER}/keys")

    def claims(self, **changes: Any) -> dict[str, Any]:
        """Good claims with changes; what is changed to None is left out."""
        good = {"iss": ISSUER, "sub": "alice", "aud": AUDIENCE, "exp": self.clock.now + 3600, "scope": "use"}
        return {name: value for name, value in {**good, **changes}.items() if value is not None}

    def token(self, *, key: Key | None = None, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
        signer = key or self.keys[0]
        return jwt.encode(self.claims(**changes), signer.private, "ES256", {"kid": signer.id, **(header or {})})

    def verifier(self, **options: Any) -> JwtVerifier:
        return JwtVerifier([ISSUER], ALGORITHMS, get=self.get, clock=self.clock, **options)

    def server(self, settings: Mapping[str, object] | None = None, **options: Any) -> MCPServer:
        """A server that takes this issuer's tokens."""
        given = {"identity": "bearer", "authorization_servers": (ISSUER,), **(settings or {})}
        chosen = {"token_verifier": self.verifier(), **options}
        return MCPServer("protected", "1", settings=Settings.model_validate(given), **chosen)


def bearer(token: str) -> dict[str, str | None]:
    return {"authorization": f"Bearer {token}"}
