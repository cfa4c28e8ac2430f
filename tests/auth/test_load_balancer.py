"""The user that a load balancer logged in: taken from its signed header, once signature, signer and times hold."""

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

import jwt
import pytest

from mcp_stateless.tokens import FromAlb
from tests.auth.callers import asked, identified_by
from tests.auth.issuer import NOW, Clock, Key
from tests.http.door import Door

HEADER: Final = "x-amzn-oidc-data"
ARN: Final = "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/app/mcp/50dc6c495c0c9188"
KEY_ID: Final = "0c9e0f0a-5c3b-4c1f-9f4e-3a6d5c0b7a11"
IDP: Final = "https://idp.example"
USER: Final = {"sub": "alice", "email": "alice@example.com"}
ALICE: Final = {"issuer": IDP, "subject": "alice", "client": "app", "scopes": [], "anonymous": False}


class Balancer:
    """Signs like a load balancer, and publishes its keys by their ids."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.keys = {KEY_ID: Key(KEY_ID)}
        self.asked: list[str] = []
        identify = FromAlb(ARN, "us-east-1", get=self.get, clock=self.clock)
        self.door = Door(identified_by(identify, "alb", alb_arn=ARN, alb_region="us-east-1"), "alb")

    def get(self, url: str) -> bytes:
        self.asked.append(url)
        place, _, key_id = url.rpartition("/")
        assert place == "https://public-keys.auth.elb.us-east-1.amazonaws.com"
        if key_id not in self.keys:
            raise OSError("404")
        return self.keys[key_id].pem

    def token(self, claims: Mapping[str, Any] = USER, *, signed_by: Key | None = None, **header: Any) -> str:
        full = {"kid": KEY_ID, "signer": ARN, "iss": IDP, "client": "app", "exp": int(NOW) + 120, **header}
        given = {name: value for name, value in full.items() if value is not None}
        return jwt.encode(dict(claims), (signed_by or self.keys[KEY_ID]).private, "ES256", given)


@pytest.fixture
def balancer() -> Balancer:
    return Balancer()


def test_the_user_is_whom_the_signed_header_names(balancer: Balancer) -> None:
    assert asked(balancer.door.call("who", headers={HEADER: balancer.token()})) == ALICE


def test_times_may_stand_among_the_claims(balancer: Balancer) -> None:
    token = balancer.token({**USER, "exp": int(NOW) + 120, "iss": IDP}, exp=None, iss=None)
    assert asked(balancer.door.call("who", headers={HEADER: token}))["subject"] == "alice"


def test_segments_may_be_padded(balancer: Balancer) -> None:
    parts = balancer.token().split(".")[:2]
    padded = ".".join(part + "=" * (-len(part) % 4) for part in parts)
    algorithm = jwt.get_algorithm_by_name("ES256")
    signature = algorithm.sign(padded.encode(), balancer.keys[KEY_ID].private)
    token = f"{padded}.{base64.urlsafe_b64encode(signature).decode()}"
    assert "=" in token
    assert asked(balancer.door.call("who", headers={HEADER: token}))["subject"] == "alice"


def test_a_key_is_fetched_once(balancer: Balancer) -> None:
    for _ in range(3):
        assert balancer.door.call("who", headers={HEADER: balancer.token()}).status == 200
    assert len(balancer.asked) == 1


def unsigned(balancer: Balancer) -> str:
    head = base64.urlsafe_b64encode(json.dumps({"alg": "none", "kid": KEY_ID, "signer": ARN}).encode()).decode()
    body = base64.urlsafe_b64encode(json.dumps({**USER, "exp": NOW + 60}).encode()).decode()
    return f"{head}.{body}."


DEFECTS: Final[Mapping[str, Any]] = {
    "none": lambda balancer: None,
    "empty": lambda balancer: "",
    "garbage": lambda balancer: "alice",
    "two": lambda balancer: f"{balancer.token()}, {balancer.token()}",
    "unsigned": unsigned,
    "nested too deeply": lambda balancer: f"{base64.urlsafe_b64encode(b'[' * 6000).decode()}.e30.e30",
    "another signer": lambda balancer: balancer.token(signer=ARN.replace("mcp", "theirs")),
    "no signer": lambda balancer: balancer.token(signer=None),
    "another key": lambda balancer: balancer.token(signed_by=Key("other")),
    "expired": lambda balancer: balancer.token(exp=int(NOW) - 60),
    "never expires": lambda balancer: balancer.token(exp=None),
    "no user": lambda balancer: balancer.token({"email": "alice@example.com"}),
    "no issuer": lambda balancer: balancer.token(iss=None),
    "shared secret": lambda balancer: jwt.encode(
        {**USER, "exp": int(NOW) + 60}, "x" * 64, "HS256", {"kid": KEY_ID, "signer": ARN}
    ),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_what_does_not_hold_is_refused(balancer: Balancer, defect: str) -> None:
    token = DEFECTS[defect](balancer)
    answer = balancer.door.call("who", headers={} if token is None else {HEADER: token})
    assert answer.status == 401
    assert answer.json["error"]["message"] == "Unauthorized"
    assert "www-authenticate" not in answer.headers


@pytest.mark.parametrize(
    "key_id",
    ["../evil", "https://evil.example", f"{KEY_ID}/..", f"{KEY_ID}\n", KEY_ID.upper(), f"{KEY_ID}?", "", "k" * 36],
)
def test_a_key_id_that_is_no_uuid_never_becomes_a_url(balancer: Balancer, key_id: str) -> None:
    answer = balancer.door.call("who", headers={HEADER: balancer.token(kid=key_id)})
    assert answer.status == 401
    assert balancer.asked == []


def test_an_unknown_key_is_refused(balancer: Balancer) -> None:
    other = "11111111-2222-3333-4444-555555555555"
    assert balancer.door.call("who", headers={HEADER: balancer.token(kid=other)}).status == 401
    assert balancer.asked == [f"https://public-keys.auth.elb.us-east-1.amazonaws.com/{other}"]


def test_the_other_headers_of_a_load_balancer_name_nobody(balancer: Balancer) -> None:
    headers = {"x-amzn-oidc-identity": "alice", "x-amzn-oidc-accesstoken": balancer.token()}
    assert balancer.door.call("who", headers=headers).status == 401
    assert balancer.door.call("who", headers={"authorization": f"Bearer {balancer.token()}"}).status == 401
