"""Who may call what template.yaml deploys, for each value of its parameter `Identity`."""

import json
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_stateless.scaffold import write_project
from mcp_stateless.settings import Settings
from mcp_stateless.testing import Subprocess
from tests.project.cloudformation import Deployed
from tests.project.sam import ENVIRONMENT, ROOT, run_python, sam
from tests.project.test_build import ANSWER, HERE, MOST_BYTES
from tests.project.test_events import names, read, readable
from tests.project.test_template import TEMPLATE, documents, parameters

ISSUER: Final = "https://login.example.com/"
KEY: Final = "k" * 32

FITTING: Final = {
    "none": {},
    "jwt": {"Issuer": ISSUER, "Audience": "https://tools.example.com/mcp,other"},
    "iam": {},
    "bearer": {"Issuer": ISSUER},
}
"""The least that each value needs beside it."""

IDENTITIES: Final = list(FITTING)


def deployed(identity: str, **given: str) -> Deployed:
    stack = Deployed(documents()["after"], Identity=identity, **{**FITTING[identity], **given})
    assert stack.refused() == []
    return stack


def routes(stack: Deployed) -> dict[str, Any]:
    """Path and method of each route -> the schemes by which it asks who is calling."""
    [api] = stack.resources("AWS::ApiGatewayV2::Api").values()
    return {
        f"{method} {path}": [scheme for each in route.get("security", []) for scheme in each]
        for path, methods in api["Body"]["paths"].items()
        for method, route in methods.items()
    }


def schemes(stack: Deployed) -> dict[str, Any]:
    [api] = stack.resources("AWS::ApiGatewayV2::Api").values()
    return dict(api["Body"].get("components", {}).get("securitySchemes", {}))


def test_anybody_may_call_when_nothing_is_said() -> None:
    assert parameters()["Identity"]["Default"] == "none"
    assert parameters()["Identity"]["AllowedValues"] == IDENTITIES


@pytest.mark.parametrize("identity", IDENTITIES)
def test_the_linter_passes_with_each_identity(identity: str, tmp_path: Path) -> None:
    text = TEMPLATE.read_text()
    for name, value in {"Identity": identity, **FITTING[identity]}.items():
        text, count = re.subn(rf"(\n  {name}:\n    Type: String\n    Default: ).*", rf"\g<1>{value}", text)
        assert count == 1
    template = tmp_path / "template.yaml"
    template.write_text(text)

    assert "is a valid SAM Template" in sam("validate", "--lint", "--template", str(template), cwd=tmp_path)


@pytest.mark.parametrize("identity", ["none", "bearer"])
def test_the_api_asks_nobody_where_nobody_or_the_server_does(identity: str) -> None:
    stack = deployed(identity)

    assert routes(stack) == {"x-amazon-apigateway-any-method $default": []}
    assert schemes(stack) == {}


def test_the_jwt_authorizer_stands_before_posts_and_before_nothing_else() -> None:
    """Metadata, health, preflights and the 405 of GET and DELETE need no token: the default route has them."""
    stack = deployed("jwt")

    assert routes(stack) == {"x-amazon-apigateway-any-method $default": [], "post /mcp": ["Issuer"]}
    [api] = stack.resources("AWS::ApiGatewayV2::Api").values()
    integrations = [
        route["x-amazon-apigateway-integration"]
        for methods in api["Body"]["paths"].values()
        for route in methods.values()
    ]
    assert integrations[0] == integrations[1]
    assert f"post {Settings().path}" in routes(stack)


def test_a_missing_token_is_401_because_the_authorizer_says_where_it_looks() -> None:
    assert schemes(deployed("jwt")) == {
        "Issuer": {
            "type": "oauth2",
            "x-amazon-apigateway-authorizer": {
                "type": "jwt",
                "identitySource": "$request.header.Authorization",
                "jwtConfiguration": {"issuer": ISSUER, "audience": ["https://tools.example.com/mcp", "other"]},
            },
        }
    }


def test_with_iam_every_route_of_the_api_asks_for_a_signature() -> None:
    stack = deployed("iam")

    assert routes(stack) == {"x-amazon-apigateway-any-method $default": ["AWS_IAM"]}
    # The spelling of SAM's own: API Gateway knows IAM by the type, whatever the name.
    assert schemes(stack)["AWS_IAM"]["x-amazon-apigateway-authtype"] == "awsSigv4"


@pytest.mark.parametrize(
    ("identity", "auth", "principal"),
    [("none", "NONE", "*"), ("bearer", "NONE", "*"), ("iam", "AWS_IAM", {"Ref": "AWS::AccountId"})],
)
def test_a_function_url_has_both_permissions_and_with_iam_only_for_the_account(
    identity: str, auth: str, principal: object
) -> None:
    stack = deployed(identity, Endpoint="FunctionUrl")

    [url] = stack.resources("AWS::Lambda::Url").values()
    assert url["AuthType"] == auth
    of_the_url, to_invoke = stack.resources("AWS::Lambda::Permission").values()
    assert (of_the_url["Action"], of_the_url["FunctionUrlAuthType"]) == ("lambda:InvokeFunctionUrl", auth)
    assert (to_invoke["Action"], to_invoke["InvokedViaFunctionUrl"]) == ("lambda:InvokeFunction", True)
    assert of_the_url["Principal"] == to_invoke["Principal"] == principal


@pytest.mark.parametrize("identity", IDENTITIES)
def test_identity_gives_the_functions_no_permission(identity: str) -> None:
    def policies(stack: Deployed) -> list[Any]:
        return [stack.resources("AWS::IAM::Role"), stack.resources("AWS::IAM::RolePolicy")]

    assert policies(deployed(identity)) == policies(deployed("none"))


@pytest.mark.parametrize("function", ["Server", "Worker"])
@pytest.mark.parametrize(
    ("identity", "setting", "issuers"),
    [("none", "none", ()), ("iam", "iam", ()), ("bearer", "bearer", (ISSUER,))],
)
def test_both_functions_are_told_who_says_who_is_calling(
    identity: str, setting: str, issuers: tuple[str, ...], function: str
) -> None:
    stack = deployed(identity, Polling="on", SigningKeys=KEY)
    settings = Settings.from_environment(stack.variables(function))

    assert (settings.identity, settings.authorization_servers) == (setting, issuers)


def test_the_server_reads_the_word_of_the_jwt_authorizer() -> None:
    stack = deployed("jwt", RequiredScopes="tools,more", PublicUrl="https://tools.example.com/mcp")
    settings = Settings.from_environment(stack.variables("Server"))

    assert settings.identity == "jwt_authorizer"
    assert settings.authorization_servers == (ISSUER,)
    assert settings.required_scopes == ("tools", "more")
    assert settings.public_url == "https://tools.example.com/mcp"


def test_the_audience_of_a_server_that_checks_tokens_may_be_another_than_its_url() -> None:
    assert Settings.from_environment(deployed("bearer").variables("Server")).audience == ""
    stack = deployed("bearer", Audience="api://tools")
    assert Settings.from_environment(stack.variables("Server")).audience == "api://tools"


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"Identity": "jwt", "Audience": "a"}, "Issuer"),
        ({"Identity": "bearer"}, "Issuer"),
        ({"Identity": "jwt", "Issuer": ISSUER}, "Audience"),
        ({"Identity": "jwt", "Issuer": ISSUER, "Audience": "a", "Endpoint": "FunctionUrl"}, "Function URL"),
        ({"Identity": "jwt", "Issuer": ISSUER, "Audience": "a", "Polling": "on", "SigningKeys": KEY}, "polls"),
        ({"Issuer": ISSUER}, "Identity"),
        ({"Audience": "a"}, "Identity"),
        ({"Identity": "iam", "RequiredScopes": "tools"}, "Identity"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_is_made(given: dict[str, str], word: str) -> None:
    [reason] = Deployed(documents()["after"], **given).refused()

    assert word in reason


@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("Issuer", ["", "https://login.example.com", "https://login.example.com/a/"], ["http://a.b", "https://a,b"]),
        ("Audience", ["", "a", "api://a,b"], ["a, b", "a,"]),
        ("RequiredScopes", ["", "tools:read", "a,b"], ["a b", ","]),
        ("PublicUrl", ["", "https://tools.example.com/mcp"], ["tools.example.com/mcp", "http://tools.example.com"]),
    ],
)
def test_slips_in_the_values_are_refused(name: str, good: list[str], bad: list[str]) -> None:
    pattern = parameters()[name]["AllowedPattern"]

    assert [value for value in (*good, *bad) if re.fullmatch(pattern, value)] == good


@pytest.mark.parametrize("endpoint", ["HttpApi", "FunctionUrl"])
def test_the_outputs_say_where_the_metadata_is_when_there_is_any(endpoint: str) -> None:
    place = deployed("bearer", Endpoint=endpoint).outputs()["MetadataUrl"]["Fn::Sub"]

    assert place.endswith(".well-known/oauth-protected-resource/mcp")
    assert deployed("bearer", PublicUrl="https://tools.example.com/mcp").outputs()["MetadataUrl"] == {
        "Fn::Sub": "${PublicUrl}/.well-known/oauth-protected-resource"
    }
    assert "MetadataUrl" not in deployed("none", Endpoint=endpoint).outputs()
    assert "MetadataUrl" not in deployed("iam", Endpoint=endpoint).outputs()


def test_clients_connect_to_the_url_that_users_type() -> None:
    assert deployed("bearer", PublicUrl="https://tools.example.com/mcp").outputs()["McpEndpoint"] == (
        "https://tools.example.com/mcp"
    )
    assert deployed("bearer").outputs()["McpEndpoint"]["Fn::Sub"].endswith("/mcp")


@pytest.mark.parametrize(
    ("identity", "word"), [("none", "address"), ("jwt", "Bearer"), ("iam", "SigV4"), ("bearer", "MetadataUrl")]
)
def test_the_outputs_say_how_a_client_logs_in(identity: str, word: str) -> None:
    assert word in deployed(identity).outputs()["LogIn"]


EVENTS: Final = ROOT / "events" / "identity"


@pytest.mark.parametrize("name", names(EVENTS))
def test_what_the_template_deploys_answers_an_event_as_the_file_beside_it_says(name: str) -> None:
    variables = deployed(name.partition("-")[0]).variables("Server")

    with Subprocess("handler.app:lambda_handler", env=variables, cwd=ROOT) as environment:
        reply = environment.invoke(read(f"identity/{name}"))

    assert readable(reply) == read(f"identity/{name}.expected")


def test_there_is_an_event_for_each_identity_but_none() -> None:
    assert names(EVENTS) == [
        *("bearer-metadata", "bearer-no-token", "iam-ping"),
        *("jwt-around-the-authorizer", "jwt-get-not-allowed", "jwt-metadata", "jwt-ping"),
    ]


@pytest.mark.parametrize(("target", "extra"), [("python3.12-x86_64", False), ("python3.12-x86_64-auth", True)])
def test_the_folder_of_a_target_says_what_is_installed(target: str, extra: bool, tmp_path: Path) -> None:
    for project in (ROOT, write_project("tools", tmp_path).folder):
        make = ["make", "--dry-run", "--makefile", f"targets/{target}/Makefile", "build-Server"]
        finished = subprocess.run(make, cwd=project, env=ENVIRONMENT, capture_output=True, text=True, check=True)

        assert ("[auth]'" in finished.stdout) == extra
        assert "--python-version 3.12" in finished.stdout
        assert "--platform manylinux2014_x86_64 " in finished.stdout


@pytest.mark.slow
@pytest.mark.timeout(180)
@pytest.mark.skipif(sys.platform != "linux", reason="what is built for Lambda runs on Linux only")
def test_only_the_build_for_bearer_carries_what_checks_tokens(tmp_path: Path) -> None:
    architecture = "arm64" if platform.machine() == "aarch64" else "x86_64"
    chosen = ("Identity=bearer", f"Issuer={ISSUER}", f"Runtime={HERE}", f"Architecture={architecture}")
    sam("build", "Server", "--parameter-overrides", *chosen, "--build-dir", str(tmp_path), cwd=ROOT)
    built = tmp_path / "Server"

    finished = subprocess.run(
        [sys.executable, "-I", "-S", "-c", ANSWER, str(built)],
        input=json.dumps(read("identity/bearer-no-token")),
        env={**deployed("bearer").variables("Server"), "AWS_LAMBDA_FUNCTION_NAME": "tools", "PATH": os.defpath},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert finished.returncode == 0, finished.stderr
    assert readable(json.loads(finished.stdout)) == read("identity/bearer-no-token.expected")
    sizes = {path: path.stat().st_size for path in built.rglob("*") if path.is_file()}
    of_the_extra = ("cryptography", "cffi", "_cffi_backend", "pycparser", "jwt", "pyjwt")
    extra = {path for path in sizes if path.relative_to(built).parts[0].startswith(of_the_extra)}
    assert {"cryptography", "jwt"} <= {path.relative_to(built).parts[0] for path in extra}
    assert sum(sizes.values()) - sum(sizes[path] for path in extra) < MOST_BYTES
    assert sum(sizes.values()) < 2 * MOST_BYTES


LOCAL_ROUTES: Final = """
import sys
from samcli.lib.providers.api_provider import ApiProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider

stacks, _ = SamLocalStackProvider.get_stacks("template.yaml", parameter_overrides={"Identity": sys.argv[1]})
for route in ApiProvider(stacks, cwd=".").api.routes:
    print(route.path, "POST" in route.methods, route.authorizer_name)
"""


@pytest.mark.parametrize("identity", IDENTITIES)
def test_sam_local_serves_every_path_and_asks_nobody(identity: str) -> None:
    """The SAM CLI has no JWT authorizer and no IAM; what matters is that it reads the definition at all."""
    assert run_python("-c", LOCAL_ROUTES, identity, cwd=ROOT).splitlines() == ["$default True None"]
