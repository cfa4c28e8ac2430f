"""Sealed tokens: only what this ring sealed, for this purpose and this binding, in time, letter by letter, opens."""

import base64
import hashlib
import hmac
import string
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_stateless.errors import ConfigurationError
from mcp_stateless.protocol.sealing import KeyRing, Rejected, seal, unseal

OLD, NEW = b"o" * 32, b"n" * 32
RING = KeyRing((NEW,))
BOUND = ("issuer|subject", "tools/call", "digest")
NOW = 1_800_000_000
ALPHABET = string.ascii_letters + string.digits + "-_"
BODIES = {"empty": b"", "short": b"{}", "long": b'{"a":"' + b"x" * 500 + b'"}', "random": bytes(range(256)) * 2}


def sealed(body: bytes = b"{}", ring: KeyRing = RING, purpose: str = "round", bound_to: tuple[str, ...] = BOUND) -> str:
    return seal(ring, purpose, body, bound_to=bound_to, expires_at=NOW + 60)


def opened(
    token: str,
    ring: KeyRing = RING,
    purpose: str = "round",
    bound_to: tuple[str, ...] = BOUND,
    now: float = NOW,
    max_bytes: int = 10_000,
) -> bytes:
    return unseal(ring, purpose, token, bound_to=bound_to, now=now, max_bytes=max_bytes)


def forged(signed: bytes, key: bytes = NEW, purpose: str = "round") -> str:
    """What somebody with the key could sign: shows that the checks behind the signature hold by themselves."""
    parts = [part.encode() for part in BOUND]
    bound = b"".join(len(part).to_bytes(4, "big") + part for part in parts)
    derived = hmac.digest(key, b"mcp-stateless/" + purpose.encode(), "sha256")
    size = len(base64.urlsafe_b64decode(sealed(b"") + "==")) - len(head(0))
    signature = hmac.digest(derived, bound + signed, "sha256")[:size]
    return base64.urlsafe_b64encode(signed + signature).rstrip(b"=").decode()


def head(flags: int, version: bytes = b"\x01") -> bytes:
    key_id = hashlib.sha256(b"mcp-stateless/key-id" + NEW).digest()[:4]
    return version + key_id + (NOW + 60).to_bytes(5, "big") + bytes([flags])


@given(st.binary(max_size=2000), st.lists(st.text(max_size=20), max_size=4).map(tuple), st.text(max_size=10))
def test_what_was_sealed_opens(body: bytes, bound_to: tuple[str, ...], purpose: str) -> None:
    token = sealed(body, purpose=purpose, bound_to=bound_to)
    assert set(token) <= set(ALPHABET)
    assert opened(token, purpose=purpose, bound_to=bound_to) == body


def test_the_same_body_is_sealed_alike_and_a_long_one_gets_shorter() -> None:
    assert sealed() == sealed()
    assert len(sealed(b"x" * 5000)) < 300


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_token_altered_at_any_letter_is_rejected(body: bytes) -> None:
    token = sealed(body)
    for position, letter in enumerate(token):
        for other in {ALPHABET[(ALPHABET.index(letter) + shift) % 64] for shift in (1, 2, 17, 32, 63)} | {
            "=",
            "+",
            " ",
        }:
            with pytest.raises(Rejected):
                opened(token[:position] + other + token[position + 1 :])


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_token_cut_or_lengthened_anywhere_is_rejected(body: bytes) -> None:
    token = sealed(body)
    for length in range(len(token)):
        for part in (token[:length], token[length + 1 :], token[:length] + token[length + 1 :]):
            with pytest.raises(Rejected):
                opened(part)
        with pytest.raises(Rejected):
            opened(token[:length] + "A" + token[length:])


def test_every_bit_of_every_byte_is_signed() -> None:
    raw = base64.urlsafe_b64decode(sealed() + "==")
    for position in range(len(raw)):
        for bit in range(8):
            changed = bytearray(raw)
            changed[position] ^= 1 << bit
            with pytest.raises(Rejected):
                opened(base64.urlsafe_b64encode(bytes(changed)).rstrip(b"=").decode())


@given(st.one_of(st.text(max_size=200), st.text(ALPHABET, max_size=200), st.binary(max_size=200).map(
    lambda raw: base64.urlsafe_b64encode(b"\x01" + raw).rstrip(b"=").decode()
)))  # fmt: skip
@settings(max_examples=300)
def test_nothing_else_ever_opens_or_raises_anything_else(token: str) -> None:
    with pytest.raises(Rejected):
        opened(token)


@pytest.mark.parametrize("change", ["=", "==", "\n", " ", "\x00"])
def test_one_body_has_one_spelling(change: str) -> None:
    with pytest.raises(Rejected):
        opened(sealed() + change)
    with pytest.raises(Rejected):
        opened(change + sealed())


def test_bits_that_base64_ignores_are_not_ignored() -> None:
    token = next(token for n in range(3) if len(token := sealed(b"x" * n)) % 4)
    others = [token[:-1] + letter for letter in ALPHABET if letter != token[-1]]
    same = [
        other for other in others if base64.urlsafe_b64decode(other + "==") == base64.urlsafe_b64decode(token + "==")
    ]
    assert same
    for other in others:
        with pytest.raises(Rejected):
            opened(other)


@pytest.mark.parametrize(
    "bound_to",
    [
        (),
        ("issuer|other", "tools/call", "digest"),
        ("issuer|subject", "prompts/get", "digest"),
        ("issuer|subject", "tools/call", "other"),
        ("issuer|subject", "tools/call"),
        ("issuer|subject", "tools/call", "digest", ""),
        ("", "issuer|subject", "tools/call", "digest"),
        ("issuer|subjecttools/call", "", "digest"),
        ("issuer|subject", "tools/calldigest", ""),
    ],
)
def test_another_caller_or_call_is_rejected(bound_to: tuple[str, ...]) -> None:
    with pytest.raises(Rejected, match="signature"):
        opened(sealed(), bound_to=bound_to)


@given(st.lists(st.text(max_size=5), max_size=4).map(tuple), st.lists(st.text(max_size=5), max_size=4).map(tuple))
def test_no_two_bindings_are_alike(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    token = sealed(bound_to=one)
    if one == other:
        assert opened(token, bound_to=other) == b"{}"
    else:
        with pytest.raises(Rejected):
            opened(token, bound_to=other)


@pytest.mark.parametrize("purpose", ["", "rounds", "Round", "event", "round/encrypt"])
def test_another_purpose_is_rejected(purpose: str) -> None:
    with pytest.raises(Rejected, match="signature"):
        opened(sealed(), purpose=purpose)


@pytest.mark.parametrize(("now", "holds"), [(NOW, True), (NOW + 59.9, True), (NOW + 60, False), (NOW + 10**6, False)])
def test_a_token_expires(now: float, holds: bool) -> None:
    if holds:
        assert opened(sealed(), now=now) == b"{}"
    else:
        with pytest.raises(Rejected, match="expired"):
            opened(sealed(), now=now)


def test_an_expired_token_for_something_else_is_told_apart_by_its_signature_first() -> None:
    with pytest.raises(Rejected, match="signature"):
        opened(sealed(), purpose="other", now=NOW + 99)


def test_the_first_key_signs_and_all_of_them_verify() -> None:
    old = sealed(ring=KeyRing((OLD,)))
    both = KeyRing((NEW, OLD))
    assert opened(old, ring=both) == b"{}"
    assert sealed(ring=both) == sealed(ring=RING)
    assert opened(sealed(ring=both), ring=RING) == b"{}"
    with pytest.raises(Rejected, match="not in the ring"):
        opened(old, ring=RING)


def test_a_key_that_only_shares_its_id_does_not_verify() -> None:
    raw = bytearray(base64.urlsafe_b64decode(sealed(ring=KeyRing((OLD,))) + "=="))
    raw[1:5] = base64.urlsafe_b64decode(sealed() + "==")[1:5]
    with pytest.raises(Rejected, match="signature"):
        opened(base64.urlsafe_b64encode(bytes(raw)).rstrip(b"=").decode())


@pytest.mark.parametrize("size", [9_999, 10_000])
def test_a_body_within_the_limit_opens(size: int) -> None:
    assert opened(sealed(b"x" * size)) == b"x" * size


@pytest.mark.parametrize("size", [10_001, 50_000_000])
def test_a_body_over_the_limit_is_rejected_and_never_unpacked(size: int) -> None:
    token = sealed(b"x" * size)
    assert len(token) < 100_000
    with pytest.raises(Rejected, match="larger"):
        opened(token)


def test_a_body_that_is_not_compressed_is_bounded_too() -> None:
    with pytest.raises(Rejected, match="larger"):
        opened(sealed(bytes(range(200))), max_bytes=199)


def test_what_is_signed_is_still_checked() -> None:
    assert opened(forged(head(0) + b"{}")) == b"{}"
    with pytest.raises(Rejected, match="version"):
        opened(forged(head(0, b"\x02") + b"{}"))
    with pytest.raises(Rejected, match="cipher"):
        opened(forged(head(2) + b"{}"))
    assert opened(forged(head(1) + zlib.compress(b"{}"))) == b"{}"


class Xor:
    """A cipher that hides nothing from anybody, but shows where one is called, and with which key."""

    def encrypt(self, key: bytes, body: bytes) -> bytes:
        return b"!" + bytes(byte ^ key[0] for byte in body)

    def decrypt(self, key: bytes, body: bytes) -> bytes:
        if not body.startswith(b"!"):
            raise Rejected("not encrypted here")
        return bytes(byte ^ key[0] for byte in body[1:])


@pytest.mark.parametrize("body", BODIES.values(), ids=BODIES)
def test_a_cipher_is_used_under_a_key_of_its_own(body: bytes) -> None:
    ring = KeyRing((NEW,), Xor())
    token = sealed(body, ring=ring)
    assert opened(token, ring=ring) == body
    with pytest.raises(Rejected, match="cipher"):
        opened(token)
    assert opened(sealed(body), ring=ring) == body  # sealed before there was a cipher


@pytest.mark.parametrize(
    ("keys", "text"),
    [((), "32 bytes"), ((b"x" * 31,), "32 bytes"), ((NEW, b"short"), "32 bytes"), ((NEW, OLD, NEW), "one key twice")],
)
def test_a_ring_that_is_not_safe_is_refused_with_the_fix(keys: tuple[bytes, ...], text: str) -> None:
    with pytest.raises(ConfigurationError, match=text):
        KeyRing(keys)


def test_a_ring_never_shows_its_keys() -> None:
    assert repr(KeyRing((NEW, OLD))) == "KeyRing(2 keys)"
    assert "nnnn" not in f"{RING} {RING!r}"
