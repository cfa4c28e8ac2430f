"""Tokens that a client carries and brings back: signed, bound to a purpose and a caller, expiring. Pure.

A token is `base64url(version . key id . expiry . flags . body . signature)`. The signature is HMAC-SHA-256 under a key
derived from the ring's key and the purpose, over everything before it and over what the token is bound to; the binding
itself is not in the token. Nothing of a token is used before its signature is verified, and what is decompressed is
bounded. Signed is not secret: a client can read the body, unless a `Cipher` is given.
"""

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from mcp_stateless.errors import ConfigurationError

MIN_KEY_BYTES: Final = 32
"""Keys are at least as long as the digest they feed (RFC 2104, section 3)."""

MAKE_A_KEY: Final = "python3 -c 'import secrets; print(secrets.token_urlsafe(32))'"

_VERSION: Final = b"\x01"
_KEY_ID: Final = 4
_EXPIRY: Final = 5
_SIGNATURE: Final = 16
"""Half of the digest: 128 bits, the least that RFC 2104, section 5 allows, and event ids travel in headers."""
_HEAD: Final = len(_VERSION) + _KEY_ID + _EXPIRY + 1
_COMPRESSED: Final = 1
_ENCRYPTED: Final = 2
_COMPRESS_OVER: Final = 256
"""Shorter bodies do not get shorter by compression."""


class Rejected(Exception):
    """A token does not hold. The text says why, for the log; the caller is told one fixed sentence."""


class Cipher(Protocol):
    """Authenticated encryption of bodies. `decrypt` raises `Rejected` for what `encrypt` did not make with this key."""

    def encrypt(self, key: bytes, body: bytes) -> bytes: ...

    def decrypt(self, key: bytes, body: bytes) -> bytes: ...


@dataclass(frozen=True, slots=True)
class KeyRing:
    """Secrets, newest first: the first signs, all of them verify, so that keys can be exchanged by a deploy.

    Raises:
        ConfigurationError: no key, a short key, or one key twice.
    """

    keys: tuple[bytes, ...]
    cipher: Cipher | None = None

    def __post_init__(self) -> None:
        if not self.keys or any(len(key) < MIN_KEY_BYTES for key in self.keys):
            raise ConfigurationError(f"Signing keys must have {MIN_KEY_BYTES} bytes or more; make one: {MAKE_A_KEY}")
        if len({_key_id(key) for key in self.keys}) != len(self.keys):
            raise ConfigurationError("The signing keys hold one key twice; list each key once, the newest first")

    def __repr__(self) -> str:
        return f"KeyRing({len(self.keys)} keys)"


def seal(ring: KeyRing, purpose: str, body: bytes, *, bound_to: Sequence[str], expires_at: int) -> str:
    """A token for `body`. `expires_at` is in seconds since the epoch; `bound_to` must be given again to open it."""
    key = ring.keys[0]
    flags = 0
    if len(body) > _COMPRESS_OVER:
        body, flags = zlib.compress(body, 6), flags | _COMPRESSED
    if ring.cipher is not None:
        body, flags = ring.cipher.encrypt(_derived(key, purpose + "/encrypt"), body), flags | _ENCRYPTED
    signed = _VERSION + _key_id(key) + expires_at.to_bytes(_EXPIRY, "big") + bytes([flags]) + body
    return _encode(signed + _signature(key, purpose, bound_to, signed))


def unseal(ring: KeyRing, purpose: str, token: str, *, bound_to: Sequence[str], now: float, max_bytes: int) -> bytes:
    """The body of a token that this ring sealed for this purpose and binding.

    Raises:
        Rejected: it did not, the token expired, or its body is over `max_bytes`.
    """
    raw = _decode(token)
    if len(raw) < _HEAD + _SIGNATURE or raw[:1] != _VERSION:
        raise Rejected("not a token of this version")
    signed, signature = raw[:-_SIGNATURE], raw[-_SIGNATURE:]
    key = next((key for key in ring.keys if _key_id(key) == signed[1 : 1 + _KEY_ID]), None)
    if key is None:
        raise Rejected("signed with a key that is not in the ring")
    if not hmac.compare_digest(signature, _signature(key, purpose, bound_to, signed)):
        raise Rejected("signature does not match: altered, or made for another purpose or caller")
    if now >= int.from_bytes(signed[1 + _KEY_ID : 1 + _KEY_ID + _EXPIRY], "big"):
        raise Rejected("expired")
    return _opened(ring, key, purpose, flags=signed[_HEAD - 1], body=signed[_HEAD:], max_bytes=max_bytes)


def _opened(ring: KeyRing, key: bytes, purpose: str, *, flags: int, body: bytes, max_bytes: int) -> bytes:
    if flags & _ENCRYPTED:
        if ring.cipher is None:
            raise Rejected("encrypted, and no cipher is configured")
        body = ring.cipher.decrypt(_derived(key, purpose + "/encrypt"), body)
    if flags & _COMPRESSED:
        bounded = zlib.decompressobj()
        body = bounded.decompress(body, max_bytes + 1)
    if len(body) > max_bytes:
        raise Rejected("larger than this server seals")
    return body


def _signature(key: bytes, purpose: str, bound_to: Sequence[str], signed: bytes) -> bytes:
    # Each part is preceded by its length, so no two different bindings read alike.
    parts = [part.encode() for part in bound_to]
    bound = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    return hmac.digest(_derived(key, purpose), bound + signed, "sha256")[:_SIGNATURE]


def _derived(key: bytes, purpose: str) -> bytes:
    return hmac.digest(key, b"mcp-stateless/" + purpose.encode(), "sha256")


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"mcp-stateless/key-id" + key).digest()[:_KEY_ID]


def _encode(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def _decode(token: str) -> bytes:
    """Strict: of the many texts that decode to the same bytes, only the one that `_encode` writes is taken."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise Rejected("not base64url") from error
    if _encode(raw) != token:
        raise Rejected("not base64url as it was written")
    return raw
