"""Bearer tokens: which hold, that every defect is a 401 whose reason is in the log only, and when keys are fetched."""

import asyncio
import base64
import json
import logging
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from jwt.algorithms import RSAAlgorithm

from mcp_stateless import MCPServer, Principal, Settings, tokens
from mcp_stateless.errors import Unauthorized
from mcp_stateless.testing.local_server import LocalServer
from mcp_stateless.tokens import JwtVerifier
from tests.auth.callers import asked, telling
from tests.auth.issuer import ALGORITHMS, AUDIENCE, ISSUER, NOW, Issuer, Key, bearer
from tests.http.door import Answer, Door, asgi, request

CHALLENGE: Final = 'Bearer error="invalid_token", resource_metadata="https://'


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
def door(issuer: Issuer) -> Door:
    return Door(telling(issuer.server()).lambda_handler())


def encoded(value: object) -> str:
    raw = value if isinstance(value, bytes) else json.dumps(value).encode()
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode()


def test_a_good_token_names_its_caller(issuer: Issuer, door: Door) -> None:
    answer = door.call("who", headers=bearer(issuer.token(scope="use more", client_id="app")))
    assert asked(answer) == {
        "issuer": ISSUER,
        "subject": "alice",
        "client": "app",
        "scopes": ["more", "use"],
        "anonymous": False,
    }


@pytest.mark.parametrize(
    ("claims", "scopes"),
    [
        ({"scope": None}, []),
        ({"scope": None, "scp": ["a", "b", 3]}, ["a", "b"]),
        ({"scope": None, "scp": "a b"}, ["a", "b"]),
    ],
)
def test_scopes_are_read_in_the_forms_that_issuers_write(
    issuer: Issuer, door: Door, claims: dict[str, Any], scopes: list[str]
) -> None:
    assert asked(door.call("who", headers=bearer(issuer.token(**claims))))["scopes"] == scopes


@pytest.mark.parametrize(
    "claims",
    [
        {"aud": [AUDIENCE, "https://other.example"]},
        {"exp": NOW - 29},
        {"nbf": NOW + 29},
        {"iat": NOW + 3600},
        {"azp": "app"},
        {"jti": "x", "acr": {"deep": [1]}},
    ],
)
def test_what_is_not_a_defect_is_no_reason_to_refuse(issuer: Issuer, door: Door, claims: dict[str, Any]) -> None:
    assert door.call("who", headers=bearer(issuer.token(**claims))).status == 200


def raw(head: object, claims: object, signature: object = b"x" * 64) -> str:
    return f"{encoded(head)}.{encoded(claims)}.{encoded(signature)}"


def signed_with_public_key(issuer: Issuer) -> str:
    """An HMAC over the published key: what a verifier that trusts the token's own algorithm would accept."""
    head, claims = encoded({"alg": "HS256", "kid": "first"}), encoded(issuer.claims())
    algorithm = jwt.get_algorithm_by_name("HS256")
    return f"{head}.{claims}.{encoded(algorithm.sign(f'{head}.{claims}'.encode(), issuer.keys[0].pem))}"


DEFECTS: Final[dict[str, Callable[[Issuer], str]]] = {
    "empty": lambda issuer: "",
    "garbage": lambda issuer: "garbage",
    "two dots": lambda issuer: "..",
    "no base64": lambda issuer: "a!.b!.c!",
    "not latin": lambda issuer: "\xff\xfe.\xfd.\xfc",
    "no object": lambda issuer: raw({"alg": "ES256", "kid": "first"}, ["claims"]),
    "header no object": lambda issuer: raw(["alg"], issuer.claims()),
    "four parts": lambda issuer: issuer.token() + ".x",
    "cut": lambda issuer: issuer.token()[:-5],
    "altered": lambda issuer: ".".join([*issuer.token().split(".")[:2], issuer.token(sub="bob").split(".")[2]]),
    "nested header": lambda issuer: raw(b"[" * 4000, issuer.claims()),
    "nested claims": lambda issuer: raw({"alg": "ES256", "kid": "first"}, b'{"a":' * 3000),
    "huge number": lambda issuer: raw({"alg": "ES256", "kid": "first"}, b'{"exp":' + b"9" * 5000 + b"}"),
    "expired": lambda issuer: issuer.token(exp=NOW - 31),
    "no expiry": lambda issuer: issuer.token(exp=None),
    "expiry is text": lambda issuer: issuer.token(exp="tomorrow"),
    "expiry is no number": lambda issuer: issuer.token(exp=float("nan")),
    "not yet valid": lambda issuer: issuer.token(nbf=NOW + 31),
    "wrong audience": lambda issuer: issuer.token(aud="https://other.example/mcp"),
    "the audience with a slash": lambda issuer: issuer.token(aud=AUDIENCE + "/"),
    "no audience": lambda issuer: issuer.token(aud=None),
    "audience is a number": lambda issuer: issuer.token(aud=7),
    "wrong issuer": lambda issuer: issuer.token(iss="https://evil.example"),
    "the issuer with a slash": lambda issuer: issuer.token(iss=ISSUER + "/"),
    "no issuer": lambda issuer: issuer.token(iss=None),
    "issuer is a list": lambda issuer: raw({"alg": "ES256", "kid": "first"}, issuer.claims(iss=[ISSUER])),
    "issuer is a map": lambda issuer: raw({"alg": "ES256", "kid": "first"}, issuer.claims(iss={"a": ISSUER})),
    "no subject": lambda issuer: issuer.token(sub=None),
    "empty subject": lambda issuer: issuer.token(sub=""),
    "subject is a number": lambda issuer: raw({"alg": "ES256", "kid": "first"}, issuer.claims(sub=7)),
    "subject that cannot be encoded": lambda issuer: issuer.token(sub="\ud800"),
    "unsigned": lambda issuer: raw({"alg": "none", "kid": "first"}, issuer.claims(), b""),
    "unsigned in capitals": lambda issuer: raw({"alg": "NONE", "kid": "first"}, issuer.claims(), b""),
    "without an algorithm": lambda issuer: raw({"kid": "first"}, issuer.claims()),
    "algorithm is a list": lambda issuer: raw({"alg": ["ES256"], "kid": "first"}, issuer.claims()),
    "hmac with the public key": signed_with_public_key,
    "algorithm of another kind of key": lambda issuer: raw({"alg": "RS256", "kid": "first"}, issuer.claims()),
    "algorithm of another curve": lambda issuer: raw({"alg": "EdDSA", "kid": "first"}, issuer.claims()),
    "algorithm that is not allowed": lambda issuer: raw({"alg": "ES384", "kid": "first"}, issuer.claims()),
    "unknown key": lambda issuer: issuer.token(key=Key("second")),
    "known id, another key": lambda issuer: issuer.token(key=Key("first")),
    "no key id": lambda issuer: raw({"alg": "ES256"}, issuer.claims()),
    "key id is a number": lambda issuer: raw({"alg": "ES256", "kid": 1}, issuer.claims()),
    "huge": lambda issuer: "x" * 20_000,
    "huge and good": lambda issuer: issuer.token(fill="x" * 20_000),
    "two values": lambda issuer: f"{issuer.token()}, Bearer {issuer.token()}",
    "a critical extension": lambda issuer: issuer.token(header={"crit": ["exp"], "exp": 1}),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_a_401_and_its_reason_is_in_the_log_only(
    issuer: Issuer, door: Door, defect: str, caplog: pytest.LogCaptureFixture
) -> None:
    token = DEFECTS[defect](issuer)
    answer = door.call("who", headers=bearer(token))
    assert answer.status == 401
    assert answer.json == {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Unauthorized"}}
    assert answer.headers["www-authenticate"].startswith(CHALLENGE)
    [told] = [record.getMessage() for record in caplog.records if record.name == "mcp_stateless.endpoint"]
    assert told.startswith("a request was turned away: ")
    assert not token or token not in caplog.text
    assert all(record.levelno <= logging.WARNING for record in caplog.records)


SEGMENT: Final = st.binary(max_size=40) | st.dictionaries(
    st.sampled_from(["alg", "kid", "iss", "sub", "aud", "exp", "crit", "b64", "typ"]),
    st.none() | st.booleans() | st.floats() | st.text(max_size=5) | st.lists(st.text(max_size=3), max_size=2),
)


@given(segments=st.lists(SEGMENT, min_size=1, max_size=4))
@hypothesis_settings(max_examples=300, deadline=None, database=None)
def test_no_token_that_was_not_signed_gets_in_or_breaks_anything(segments: list[object]) -> None:
    head = {"alg": "ES256", "kid": "first"}
    for parts in (segments, [head, *segments[:2]]):
        assert SHARED.call("who", headers=bearer(".".join(map(encoded, parts)))).status == 401


SHARED: Final = Door(telling(Issuer().server()).lambda_handler())


NOT_SENT: Final[dict[str, dict[str, str | None]]] = {
    "nothing": {},
    "another scheme": {"authorization": "Basic YWxpY2U6c2VjcmV0"},
    "no scheme": {"authorization": "alice"},
    "another header": {"x-authorization": "Bearer x", "cookie": "authorization=Bearer x"},
}


@pytest.mark.parametrize("case", NOT_SENT)
def test_without_a_token_the_challenge_names_no_error(door: Door, case: str) -> None:
    answer = door.call("who", headers=NOT_SENT[case])
    assert answer.status == 401
    assert answer.headers["www-authenticate"].startswith('Bearer resource_metadata="')


# D5
@pytest.mark.parametrize("name", ["access_token", "token", "authorization"])
def test_a_token_in_the_query_string_is_none(issuer: Issuer, name: str) -> None:
    query = f"{name}={issuer.token()}"
    door = Door(telling(issuer.server()).lambda_handler(), query=query)
    assert door.call("who").status == 401
    assert "error=" not in door.call("who").headers["www-authenticate"]
    assert issuer.asked == []


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_read_in_any_case(issuer: Issuer, door: Door, scheme: str) -> None:
    assert door.call("who", headers={"authorization": f"{scheme} {issuer.token()}"}).status == 200


# Keys come from the issuer, wherever the token says they are.
@pytest.mark.parametrize("name", ["jku", "x5u", "jwk", "x5c"])
def test_a_token_does_not_say_where_its_key_is(issuer: Issuer, door: Door, name: str) -> None:
    thief = Key("thief")
    pointer = {"jku": "https://evil.example/keys", "x5u": "https://evil.example/cert", "jwk": thief.jwk, "x5c": ["x"]}
    for key_id in ("thief", "first"):
        forged = issuer.token(key=thief, header={name: pointer[name], "kid": key_id})
        assert door.call("who", headers=bearer(forged)).status == 401
    assert all(url.startswith(ISSUER) for url in issuer.asked)
    good = issuer.token(header={name: pointer[name]})
    assert door.call("who", headers=bearer(good)).status == 200


@pytest.mark.parametrize("defect", ["known id, another key", "expired", "nested claims"])
def test_every_request_is_checked(issuer: Issuer, door: Door, defect: str) -> None:
    headers = bearer(DEFECTS[defect](issuer))
    posts = [
        request("initialize", {}),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        [request("tools/list"), request("ping", request_id=2)],
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        "{not json",
    ]
    assert {door.post(body, headers).status for body in posts} == {401}
    assert door.modern("server/discover", headers=headers).status == 401


def test_keys_are_fetched_once_and_kept_while_the_environment_is_warm(issuer: Issuer, door: Door) -> None:
    for _ in range(5):
        assert door.call("who", headers=bearer(issuer.token())).status == 200
    assert issuer.asked == [f"{ISSUER}/.well-known/openid-configuration", f"{ISSUER}/keys"]


def test_unknown_key_ids_have_keys_fetched_once_a_minute_at_most(issuer: Issuer, door: Door) -> None:
    assert door.call("who", headers=bearer(issuer.token())).status == 200
    for second in range(0, 180, 5):
        issuer.clock.now = NOW + second
        assert door.call("who", headers=bearer(issuer.token(key=Key(f"made up {second}")))).status == 401
    assert issuer.key_fetches == 3


def test_a_key_that_is_exchanged_in_mid_flight_is_found(issuer: Issuer, door: Door) -> None:
    old = issuer.token()
    assert door.call("who", headers=bearer(old)).status == 200
    issuer.keys.insert(0, Key("second"))
    issuer.clock.now += 61
    assert door.call("who", headers=bearer(issuer.token())).status == 200
    assert door.call("who", headers=bearer(old)).status == 200
    assert issuer.key_fetches == 2


def test_a_key_that_is_taken_back_does_not_hold_for_long(issuer: Issuer, door: Door) -> None:
    stolen = issuer.token()
    assert door.call("who", headers=bearer(stolen)).status == 200
    issuer.keys[:] = [Key("second")]
    issuer.clock.now += tokens.MAX_AGE_S + 1
    assert door.call("who", headers=bearer(stolen)).status == 401
    assert door.call("who", headers=bearer(issuer.token())).status == 200


def test_an_issuer_that_is_down_keeps_nobody_out_who_was_in(issuer: Issuer, door: Door) -> None:
    assert door.call("who", headers=bearer(issuer.token())).status == 200
    issuer.is_down = True
    issuer.clock.now += tokens.MAX_AGE_S + 1
    assert door.call("who", headers=bearer(issuer.token())).status == 200
    assert door.call("who", headers=bearer(issuer.token(key=Key("second")))).status == 401


def test_an_issuer_that_comes_back_is_asked_again(issuer: Issuer, door: Door) -> None:
    issuer.is_down = True
    assert door.call("who", headers=bearer(issuer.token())).status == 401
    issuer.is_down = False
    assert door.call("who", headers=bearer(issuer.token())).status == 401
    issuer.clock.now += 60
    assert door.call("who", headers=bearer(issuer.token())).status == 200


def test_requests_at_the_same_time_wait_for_one_fetch(issuer: Issuer) -> None:
    verifier = issuer.verifier()
    app = telling(issuer.server(token_verifier=verifier, settings={"audience": AUDIENCE, "public_url": AUDIENCE}))

    async def main() -> list[Answer]:
        message = request("tools/list")
        headers = {"authorization": f"Bearer {issuer.token()}"}
        return await asyncio.gather(*[asgi(app.endpoint(), message, headers) for _ in range(20)])

    assert {answer.status for answer in asyncio.run(main())} == {200}
    assert issuer.key_fetches == 1


PUBLISHED: Final[dict[str, bytes]] = {
    "no json": b"<html>",
    "no set": b"[]",
    "nothing": b"{}",
    "no keys": b'{"keys":[]}',
    "keys of no kind": b'{"keys":[{"kty":"magic","kid":"first"}]}',
    "nested": b"[" * 100_000,
    "no text": b"\xff\xff",
}


@pytest.mark.parametrize("case", PUBLISHED)
def test_a_key_set_that_is_none_refuses(issuer: Issuer, case: str) -> None:
    verifier = JwtVerifier(
        [ISSUER], ALGORITHMS, jwks_url=f"{ISSUER}/keys", get=lambda url: PUBLISHED[case], clock=issuer.clock
    )
    with pytest.raises(Unauthorized):
        asyncio.run(verifier.verify(issuer.token(), AUDIENCE))


def test_keys_for_encryption_and_shared_secrets_verify_nothing(issuer: Issuer) -> None:
    secret = {"kty": "oct", "kid": "secret", "k": encoded(b"x" * 64)}
    keys = [{**issuer.keys[0].jwk, "use": "enc"}, secret]
    verifier = JwtVerifier(
        [ISSUER],
        ALGORITHMS,
        jwks_url=f"{ISSUER}/keys",
        get=lambda url: json.dumps({"keys": keys}).encode(),
        clock=issuer.clock,
    )
    shared = jwt.encode(issuer.claims(), "x" * 64, "HS256", {"kid": "secret"})
    renamed = raw({"alg": "ES256", "kid": "secret"}, issuer.claims())
    for token in (issuer.token(), shared, renamed):
        with pytest.raises(Unauthorized):
            asyncio.run(verifier.verify(token, AUDIENCE))


@pytest.mark.parametrize("algorithm", ["RS256", "PS256"])
def test_rsa_keys_without_an_id_hold_too(issuer: Issuer, algorithm: str) -> None:
    private = rsa.generate_private_key(65537, 2048)
    public = RSAAlgorithm.to_jwk(private.public_key(), as_dict=True)
    verifier = JwtVerifier(
        [ISSUER],
        ALGORITHMS,
        jwks_url=f"{ISSUER}/keys",
        get=lambda url: json.dumps({"keys": [public]}).encode(),
        clock=issuer.clock,
    )
    pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    token = jwt.encode(issuer.claims(), pem, algorithm)
    assert asyncio.run(verifier.verify(token, AUDIENCE)).subject == "alice"


def test_metadata_of_another_issuer_is_not_believed(issuer: Issuer) -> None:
    def get(url: str) -> bytes:
        return json.dumps({"issuer": "https://evil.example", "jwks_uri": "https://evil.example/keys"}).encode()

    verifier = JwtVerifier([ISSUER], ALGORITHMS, get=get, clock=issuer.clock)
    with pytest.raises(Unauthorized):
        asyncio.run(verifier.verify(issuer.token(), AUDIENCE))


class Opaque:
    """Knows one token that says nothing by itself."""

    async def verify(self, token: str, audience: str) -> Principal:
        if token == "nobody":
            return Principal("", "")
        if token != "opaque":
            raise Unauthorized(f"inactive, for {audience}")
        return Principal("https://introspection.example", "carol", scopes=frozenset({"use"}))


def opaque_door() -> Door:
    server = MCPServer("opaque", "1", token_verifier=Opaque(), settings=Settings(identity="bearer"))
    return Door(telling(server).lambda_handler())


def test_a_verifier_of_ones_own_names_callers_by_opaque_tokens() -> None:
    door = opaque_door()
    assert asked(door.call("who", headers=bearer("opaque")))["subject"] == "carol"
    assert door.call("who", headers=bearer("other")).status == 401
    assert door.call("who").status == 401


def test_a_verifier_that_names_nobody_lets_nobody_in() -> None:
    assert opaque_door().call("who", headers=bearer("nobody")).status == 401


LOADED: Final = """
    import sys
    from mcp_stateless import MCPServer, Settings

    class Verifier:
        async def verify(self, token, audience): ...

    for settings in ({}, {"identity": "jwt_authorizer"}, {"identity": "iam"}):
        MCPServer("s", "1", settings=Settings(**settings)).lambda_handler()
    MCPServer("s", "1", settings=Settings(identity="bearer"), token_verifier=Verifier()).lambda_handler()
    print([name for name in ("jwt", "cryptography", "urllib.request", "http.client") if name in sys.modules])
"""


def test_nothing_of_tokens_is_loaded_where_none_are_verified() -> None:
    code = textwrap.dedent(LOADED)
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert ran.stdout.strip() == "[]"


class Site(BaseHTTPRequestHandler):
    """Documents of an issuer that behaves badly."""

    def do_GET(self) -> None:
        if self.path == "/redirect":
            self.send_response(302)
            self.send_header("location", "/small")
            self.end_headers()
            return
        self.send_response(200)
        self.end_headers()
        if self.path == "/slow":
            try:
                for _ in range(100):
                    self.wfile.write(b" ")
                    time.sleep(0.05)
            except OSError:
                pass
        else:
            self.wfile.write(b"x" * (10 if self.path == "/small" else tokens.MAX_DOCUMENT_BYTES + 1))

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def site() -> Iterator[str]:
    with LocalServer(Site) as server:
        yield server.url


def test_a_document_is_fetched_within_bounds(site: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert tokens.fetch(f"{site}/small") == b"x" * 10
    with pytest.raises(OSError, match="larger"):
        tokens.fetch(f"{site}/large")
    with pytest.raises(OSError, match="302"):
        tokens.fetch(f"{site}/redirect")
    monkeypatch.setattr(tokens, "FETCH_TIMEOUT_S", 0.3)
    began = time.monotonic()
    with pytest.raises(OSError, match="longer"):
        tokens.fetch(f"{site}/slow")
    assert time.monotonic() - began < 2


@pytest.mark.parametrize(
    "url", ["http://issuer.example/keys", "file:///etc/hostname", "file://localhost/etc/hostname", "ftp://localhost/x"]
)
def test_documents_come_over_https_or_from_this_machine(url: str) -> None:
    with pytest.raises(OSError, match="is not https"):
        tokens.fetch(url)
