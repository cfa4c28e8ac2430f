"""What template.yaml puts on AWS: read from the template after SAM's own transform, as CloudFormation gets it."""

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.project.sam import ROOT, run_python, sam

TEMPLATE: Final = ROOT / "template.yaml"

TRANSFORM: Final = """
import json, sys
from samcli.yamlhelper import yaml_parse
from samtranslator.parser.parser import Parser
from samtranslator.translator.translator import Translator

template = yaml_parse(sys.stdin.read())
parameters = {"AWS::Region": "us-east-1", "AWS::Partition": "aws"}
after = Translator({}, Parser()).translate(json.loads(json.dumps(template)), parameters)
json.dump({"before": template, "after": after}, sys.stdout)
"""

Resource = Mapping[str, Any]


@cache
def documents() -> dict[str, Any]:
    text = TEMPLATE.read_text().replace("CodeUri: handler/", "CodeUri: s3://bucket/key")
    result: dict[str, Any] = json.loads(run_python("-c", TRANSFORM, cwd=ROOT, given=text))
    return result


def parameters() -> dict[str, dict[str, Any]]:
    return dict(documents()["before"]["Parameters"])


def resources(kind: str) -> dict[str, Resource]:
    return {name: each for name, each in documents()["after"]["Resources"].items() if each["Type"] == kind}


@pytest.mark.parametrize("runtime", ["python3.11", "python3.12", "python3.13", "python3.14"])
def test_the_template_passes_the_linter_for_each_runtime(runtime: str, tmp_path: Path) -> None:
    assert runtime in parameters()["Runtime"]["AllowedValues"]
    template = tmp_path / "template.yaml"
    template.write_text(TEMPLATE.read_text().replace("Default: python3.13", f"Default: {runtime}"))

    assert "is a valid SAM Template" in sam("validate", "--lint", "--template", str(template), cwd=tmp_path)


def test_each_runtime_and_architecture_has_a_folder_that_tells_make_the_target() -> None:
    offered = {
        f"{runtime}-{architecture}"
        for runtime in parameters()["Runtime"]["AllowedValues"]
        for architecture in parameters()["Architecture"]["AllowedValues"]
    }
    rules = {path.parent.name: path.read_text() for path in (ROOT / "targets").glob("*/Makefile")}

    assert set(rules) == offered
    assert len(set(rules.values())) == 1


def test_a_public_function_url_has_both_permissions_it_needs() -> None:
    permissions = {
        name: each["Properties"]
        for name, each in resources("AWS::Lambda::Permission").items()
        if each.get("Condition") == "UseFunctionUrl"
    }

    assert [(each["Action"], each["Principal"]) for each in permissions.values()] == [
        ("lambda:InvokeFunctionUrl", "*"),
        ("lambda:InvokeFunction", "*"),
    ]
    assert permissions["FunctionUrlPermission"]["FunctionUrlAuthType"] == "NONE"
    assert permissions["FunctionUrlInvokePermission"]["InvokedViaFunctionUrl"] is True
    [url] = resources("AWS::Lambda::Url").values()
    assert url["Condition"] == "UseFunctionUrl"
    assert url["Properties"]["AuthType"] == "NONE"


def test_the_two_endpoints_exclude_each_other() -> None:
    conditions = documents()["after"]["Conditions"]

    assert conditions["UseHttpApi"] == {"Fn::Equals": [{"Ref": "Endpoint"}, "HttpApi"]}
    assert conditions["UseFunctionUrl"] == {"Fn::Equals": [{"Ref": "Endpoint"}, "FunctionUrl"]}
    assert parameters()["Endpoint"]["AllowedValues"] == ["HttpApi", "FunctionUrl"]
    for kind in ("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"):
        assert [each["Condition"] for each in resources(kind).values()] == ["UseHttpApi"]


def test_the_http_api_hands_every_path_to_the_function() -> None:
    [api] = resources("AWS::ApiGatewayV2::Api").values()

    # The spelling of SAM's own events: `sam local start-api` knows the default route by it.
    assert list(api["Properties"]["Body"]["paths"]) == ["$default"]
    [route] = api["Properties"]["Body"]["paths"]["$default"].values()
    assert route["isDefaultRoute"] is True
    assert route["x-amazon-apigateway-integration"]["payloadFormatVersion"] == "2.0"


def test_only_the_server_answers_preflights() -> None:
    [api] = resources("AWS::ApiGatewayV2::Api").values()

    assert "x-amazon-apigateway-cors" not in api["Properties"]["Body"]
    assert "CorsConfiguration" not in api["Properties"]
    assert all("Cors" not in url["Properties"] for url in resources("AWS::Lambda::Url").values())
    [function] = resources("AWS::Lambda::Function").values()
    assert function["Properties"]["Environment"]["Variables"]["MCP_ALLOWED_ORIGINS"] == {"Ref": "AllowedOrigins"}


def test_the_function_ends_before_the_api_gives_up() -> None:
    api_limit_seconds = 30

    assert parameters()["Timeout"]["MaxValue"] < api_limit_seconds
    assert parameters()["Timeout"]["Default"] <= parameters()["Timeout"]["MaxValue"]


def test_logs_are_kept_for_a_bounded_time() -> None:
    [logs] = resources("AWS::Logs::LogGroup").values()
    [function] = resources("AWS::Lambda::Function").values()

    assert logs["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    assert function["Properties"]["LoggingConfig"]["LogGroup"] == {"Ref": "ServerLogs"}
    assert parameters()["LogRetentionDays"]["Default"] in parameters()["LogRetentionDays"]["AllowedValues"]


def test_the_function_may_write_its_own_logs_and_nothing_else() -> None:
    [role] = resources("AWS::IAM::Role").values()
    [policy] = role["Properties"]["Policies"]

    assert "ManagedPolicyArns" not in role["Properties"]
    assert policy["PolicyDocument"]["Statement"] == [
        {
            "Effect": "Allow",
            "Action": ["logs:CreateLogStream", "logs:PutLogEvents"],
            "Resource": {"Fn::GetAtt": ["ServerLogs", "Arn"]},
        }
    ]


def test_keys_are_not_shown_and_not_needed() -> None:
    assert parameters()["SigningKeys"]["NoEcho"] is True
    assert parameters()["SigningKeys"]["Default"] == ""


def test_the_endpoint_is_an_output_for_either_kind() -> None:
    [condition, of_the_api, of_the_url] = documents()["after"]["Outputs"]["McpEndpoint"]["Value"]["Fn::If"]

    assert condition == "UseHttpApi"
    assert of_the_api["Fn::Sub"].endswith("/mcp")
    assert of_the_url["Fn::Sub"] == "${FunctionUrl.FunctionUrl}mcp"


def test_a_new_project_gets_the_same_template() -> None:
    [generated] = (ROOT / "mcp_stateless" / "templates").glob("*/template.yaml")

    def without_description(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("Description:")]

    assert without_description(generated.read_text()) == without_description(TEMPLATE.read_text())
