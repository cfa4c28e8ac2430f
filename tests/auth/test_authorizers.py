"""The caller as an authorizer of AWS names it in the event: from each kind of event, and from nowhere else."""

from collections.abc import Mapping
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mcp_stateless import Context, MCPServer, Settings
from mcp_stateless.errors import ConfigurationError
from mcp_stateless.testing.events import rest_api_event
from tests.auth.callers import ANYBODY, asked, caller_of, identified
from tests.http.door import JSON_HEADERS, Answer, Door, request

CLAIMS: Final = {"iss": "https://idp.example", "sub": "alice", "client_id": "app", "scope": "read write"}
ALICE: Final = {
    "issuer": "https://idp.example",
    "subject": "alice",
    "client": "app",
    "scopes": ["read", "write"],
    "anonymous": False,
}
ROLE: Final = "arn:aws:sts::123456789012:assumed-role/Caller/session"
USER: Final = {"userArn": ROLE, "accountId": "123456789012", "userId": "AROAEXAMPLE:session"}
BY_ROLE: Final[dict[str, Any]] = {
    "issuer": "aws-iam",
    "subject": ROLE,
    "client": None,
    "scopes": [],
    "anonymous": False,
}
BY_FUNCTION: Final = {**ALICE, "issuer": "lambda-authorizer"}
JSON: Final = {**JSON_HEADERS, "mcp-protocol-version": "2025-11-25"}
CONTEXT: Final = {"sub": "alice", "client_id": "app", "scope": "read write"}

NAMED: Final[list[tuple[str, str, Mapping[str, Any], Mapping[str, Any]]]] = [
    ("jwt_authorizer", "http_api", {"jwt": {"claims": CLAIMS, "scopes": None}}, ALICE),
    # Payload 1.0 of an HTTP API has the claims where a Cognito authorizer of a REST API has them.
    ("jwt_authorizer", "rest_api", {"claims": CLAIMS, "scopes": None}, ALICE),
    # API Gateway makes one text of a claim that is a list.
    ("jwt_authorizer", "http_api", {"jwt": {"claims": {**CLAIMS, "scope": None, "scp": "[read write]"}}}, ALICE),
    ("cognito_authorizer", "rest_api", {"claims": CLAIMS}, ALICE),
    # A simple answer, or one with a policy: both leave their context in the same place.
    ("lambda_authorizer", "http_api", {"lambda": CONTEXT}, BY_FUNCTION),
    ("lambda_authorizer", "rest_api", {**CONTEXT, "principalId": "other", "integrationLatency": 3}, BY_FUNCTION),
    (
        "lambda_authorizer",
        "rest_api",
        {"principalId": "alice", "integrationLatency": 3},
        {**BY_FUNCTION, "client": None, "scopes": []},
    ),
    ("iam", "http_api", {"iam": USER}, BY_ROLE),
    ("iam", "function_url", {"iam": USER}, BY_ROLE),
]


@pytest.mark.parametrize(("identity", "source", "authorizer", "caller"), NAMED)
def test_the_caller_is_whom_the_authorizer_names(
    identity: str, source: str, authorizer: Mapping[str, Any], caller: Mapping[str, Any]
) -> None:
    door = Door(identified(identity).lambda_handler(), source, authorizer=authorizer)
    assert asked(door.call("who")) == caller
    assert asked(door.modern("tools/call", {"name": "who"})) == caller


# B97
@pytest.mark.parametrize("in_app", [False, True])
def test_tools_prompts_and_resources_see_the_same_caller(in_app: bool) -> None:
    server = identified("jwt_authorizer")
    handler = server.lambda_handler(server.app()) if in_app else server.lambda_handler()
    door = Door(handler, authorizer={"jwt": {"claims": CLAIMS}})
    assert asked(door.call("who"))["subject"] == "alice"
    prompt = door.legacy("prompts/get", {"name": "subject"}).result
    assert prompt["messages"][0]["content"]["text"] == "alice"
    assert door.legacy("resources/read", {"uri": "caller://subject"}).result["contents"][0]["text"] == "alice"


def test_the_user_of_a_rest_api_with_iam_stands_in_its_identity() -> None:
    event = rest_api_event(body=request("tools/call", {"name": "who", "arguments": {}}), headers=JSON)
    event["requestContext"]["identity"] = {**event["requestContext"].get("identity", {}), **USER}
    assert asked(caller_of(identified("iam").lambda_handler(), event)) == BY_ROLE
    event["requestContext"]["identity"]["userArn"] = None
    assert_unauthorized(caller_of(identified("iam").lambda_handler(), event))


def assert_unauthorized(answer: Answer) -> None:
    assert answer.status == 401
    assert answer.json == {"jsonrpc": "2.0", "error": {"code": -32600, "message": "Unauthorized"}}


DEFECTS: Final[list[tuple[str, str, Any]]] = [
    *(
        (identity, "http_api", None)
        for identity in ("jwt_authorizer", "cognito_authorizer", "lambda_authorizer", "iam")
    ),
    ("jwt_authorizer", "http_api", {"jwt": None}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": None}}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": {**CLAIMS, "sub": ""}}}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": {**CLAIMS, "sub": None}}}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": {**CLAIMS, "sub": ["alice"]}}}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": {**CLAIMS, "iss": None}}}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": {**CLAIMS, "sub": "\ud800"}}}),
    ("jwt_authorizer", "http_api", {"jwt": {"claims": "alice"}}),
    ("cognito_authorizer", "rest_api", {"claims": None}),
    ("cognito_authorizer", "rest_api", {"claims": {"sub": "alice"}}),
    ("lambda_authorizer", "http_api", {"lambda": None}),
    ("lambda_authorizer", "http_api", {"lambda": {}}),
    ("lambda_authorizer", "http_api", {"lambda": {"sub": 7}}),
    ("lambda_authorizer", "rest_api", {"integrationLatency": 3}),
    ("lambda_authorizer", "rest_api", {"principalId": ""}),
    ("iam", "function_url", {"iam": {"userArn": None}}),
    ("iam", "function_url", {"iam": {}}),
    ("iam", "http_api", {"iam": {"userArn": {"arn": ROLE}}}),
    # What another authorizer says, however true, is not what the setting asks for.
    ("jwt_authorizer", "http_api", {"iam": USER}),
    ("jwt_authorizer", "http_api", {"lambda": CONTEXT}),
    ("jwt_authorizer", "http_api", {"lambda": {"claims": CLAIMS}}),
    ("lambda_authorizer", "http_api", {"jwt": {"claims": CLAIMS}}),
    ("lambda_authorizer", "http_api", {"iam": USER}),
    ("iam", "http_api", {"jwt": {"claims": {**CLAIMS, "userArn": ROLE}}}),
    ("iam", "http_api", {"lambda": {"userArn": ROLE}}),
    ("cognito_authorizer", "http_api", {"jwt": {"claims": CLAIMS}}),
]


@pytest.mark.parametrize(("identity", "source", "authorizer"), DEFECTS)
def test_a_caller_that_is_not_named_is_refused_and_never_anonymous(identity: str, source: str, authorizer: Any) -> None:
    door = Door(identified(identity).lambda_handler(), source, authorizer=authorizer)
    assert_unauthorized(door.call("who"))
    assert_unauthorized(door.modern("server/discover"))
    assert_unauthorized(door.post(request("initialize", {})))
    assert_unauthorized(door.post({"jsonrpc": "2.0", "method": "notifications/initialized"}))


@pytest.mark.parametrize("identity", ["jwt_authorizer", "cognito_authorizer", "lambda_authorizer", "iam"])
@pytest.mark.parametrize("context", [None, [], "alice", {"authorizer": []}, {"authorizer": "alice"}, {"elb": {}}])
def test_an_event_whose_context_is_no_map_names_nobody(identity: str, context: Any) -> None:
    event = {"httpMethod": "POST", "path": "/mcp", "headers": JSON, "requestContext": context or {}, "body": "{}"}
    handler = identified(identity).lambda_handler()
    if isinstance(context, dict):
        assert_unauthorized(caller_of(handler, event))
    else:
        assert handler({**event, "requestContext": context}, None).get("statusCode", 401) in (400, 401)


FORGED: Final = {
    "x-amzn-oidc-data": "e30.e30.e30",
    "x-amzn-oidc-identity": "alice",
    "x-amz-user-agent": "alice",
    "x-forwarded-user": "alice",
    "x-user-id": "alice",
    "authorization": "Bearer alice",
    "cognito-identity": "alice",
    "x-amzn-request-context": '{"authorizer":{"jwt":{"claims":{"iss":"i","sub":"alice"}}}}',
}


@pytest.mark.parametrize("identity", ["none", "jwt_authorizer", "cognito_authorizer", "lambda_authorizer", "iam"])
def test_headers_of_the_client_name_nobody(identity: str) -> None:
    answer = Door(identified(identity).lambda_handler()).call("who", headers=FORGED)
    if identity == "none":
        assert asked(answer) == ANYBODY
    else:
        assert_unauthorized(answer)


def test_without_a_source_nobody_is_named_whatever_the_event_says() -> None:
    authorizer = {"jwt": {"claims": CLAIMS}, "iam": USER, "lambda": CONTEXT, "claims": CLAIMS, "principalId": "x"}
    for source in ("http_api", "rest_api", "function_url"):
        assert asked(Door(identified("none").lambda_handler(), source, authorizer=authorizer).call("who")) == ANYBODY


def test_a_body_that_looks_like_an_event_names_nobody() -> None:
    door = Door(identified("jwt_authorizer").lambda_handler())
    body = {**request("tools/list"), "requestContext": {"authorizer": {"jwt": {"claims": CLAIMS}}}}
    assert_unauthorized(door.post(body))


def test_the_scopes_of_a_route_are_not_those_of_the_token() -> None:
    claims = {**CLAIMS, "scope": "read"}
    door = Door(
        identified("jwt_authorizer").lambda_handler(),
        authorizer={"jwt": {"claims": claims, "scopes": ["read", "write", "admin"]}},
    )
    assert asked(door.call("who"))["scopes"] == ["read"]
    assert door.call("change").status == 403


def test_the_key_of_a_lambda_authorizers_subject_can_be_chosen() -> None:
    handler = identified("lambda_authorizer", subject_key="userId").lambda_handler()
    door = Door(handler, authorizer={"lambda": {"userId": "alice", "sub": "bob", "iss": "ours"}})
    assert asked(door.call("who"))["subject"] == "alice"
    assert asked(door.call("who"))["issuer"] == "ours"


def test_callers_of_one_environment_do_not_mix() -> None:
    handler = identified("jwt_authorizer").lambda_handler()
    for name in ("alice", "bob", "alice", "carol"):
        door = Door(handler, authorizer={"jwt": {"claims": {**CLAIMS, "sub": name}}})
        assert asked(door.call("who"))["subject"] == name


def test_claims_ride_along() -> None:
    server = MCPServer("claims", "1", settings=Settings(identity="jwt_authorizer"))

    @server.tool()
    def team(ctx: Context[None]) -> str:
        """Say the caller's team."""
        return str(ctx.principal.claims["team"])

    door = Door(server.lambda_handler(), authorizer={"jwt": {"claims": {**CLAIMS, "team": "blue"}}})
    assert door.call("team").text == "blue"


@pytest.mark.parametrize(
    "settings",
    [
        {"authorization_servers": ("https://idp.example",)},
        {"required_scopes": ("use",)},
        {"audience": "mcp"},
        {"jwks_url": "https://idp.example/keys"},
        {"identity": "bearer"},
        {"identity": "bearer", "authorization_servers": ("https://i.example",), "token_algorithms": ("HS256",)},
        {"identity": "bearer", "authorization_servers": ("https://i.example",), "token_algorithms": ("none",)},
        {"identity": "bearer", "authorization_servers": ("https://a", "https://b"), "jwks_url": "https://a/keys"},
        {"identity": "alb"},
        {"identity": "alb", "alb_arn": "arn"},
    ],
)
def test_a_source_that_cannot_work_fails_at_the_start(settings: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError, match="MCP_"):
        MCPServer("wrong", "1", settings=Settings.model_validate(settings))


def test_an_unknown_source_fails_at_the_start() -> None:
    with pytest.raises(ConfigurationError, match="MCP_IDENTITY"):
        Settings.from_environment({"MCP_IDENTITY": "header"})


KEYS: Final = ("jwt", "claims", "lambda", "iam", "sub", "iss", "principalId", "userArn", "scope", "scp", "client_id")
ANYTHING: Final = st.recursive(
    st.none() | st.booleans() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("identity", ["jwt_authorizer", "cognito_authorizer", "lambda_authorizer", "iam"])
@pytest.mark.parametrize("source", ["http_api", "rest_api"])
@given(authorizer=st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=5))
@hypothesis_settings(max_examples=60, deadline=None, database=None)
def test_whatever_an_authorizer_says_the_caller_is_named_or_refused(
    identity: str, source: str, authorizer: dict[str, Any]
) -> None:
    answer = Door(HANDLERS[identity], source, authorizer=authorizer).call("who")
    if answer.status == 200:
        assert asked(answer)["subject"]
        assert not asked(answer)["anonymous"]
    else:
        assert_unauthorized(answer)


HANDLERS: Final = {
    identity: identified(identity).lambda_handler()
    for identity in ("jwt_authorizer", "cognito_authorizer", "lambda_authorizer", "iam")
}
