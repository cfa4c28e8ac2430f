"""What template.yaml puts on AWS: read from the template after SAM's own transform, as CloudFormation gets it."""

import json
import re
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from mcp_stateless.calls.dynamodb import create_table
from mcp_stateless.errors import ConfigurationError
from mcp_stateless.scaffold import write_project
from mcp_stateless.settings import Settings
from tests.project.cloudformation import Deployed
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


def test_each_runtime_and_architecture_has_folders_that_tell_make_the_target() -> None:
    offered = {
        f"{runtime}-{architecture}{extra}"
        for runtime in parameters()["Runtime"]["AllowedValues"]
        for architecture in parameters()["Architecture"]["AllowedValues"]
        for extra in ("", "-auth")
    }
    rules = {path.parent.name: path.read_text() for path in (ROOT / "targets").glob("*/Makefile")}

    assert set(rules) == offered
    assert len(set(rules.values())) == 1


def test_the_two_endpoints_exclude_each_other() -> None:
    conditions = documents()["after"]["Conditions"]

    assert conditions["UseHttpApi"] == {"Fn::Equals": [{"Ref": "Endpoint"}, "HttpApi"]}
    assert conditions["UseFunctionUrl"] == {"Fn::Equals": [{"Ref": "Endpoint"}, "FunctionUrl"]}
    assert parameters()["Endpoint"]["AllowedValues"] == ["HttpApi", "FunctionUrl"]
    for kind in ("AWS::ApiGatewayV2::Api", "AWS::ApiGatewayV2::Stage"):
        assert [each["Condition"] for each in resources(kind).values()] == ["UseHttpApi"]


def test_the_http_api_hands_every_path_to_the_function() -> None:
    [api] = Deployed(documents()["after"]).resources("AWS::ApiGatewayV2::Api").values()

    # The spelling of SAM's own events: `sam local start-api` knows the default route by it.
    assert list(api["Body"]["paths"]) == ["$default"]
    [route] = api["Body"]["paths"]["$default"].values()
    assert route["isDefaultRoute"] is True
    assert route["x-amazon-apigateway-integration"]["payloadFormatVersion"] == "2.0"


def test_only_the_server_answers_preflights() -> None:
    [api] = resources("AWS::ApiGatewayV2::Api").values()

    assert "x-amazon-apigateway-cors" not in api["Properties"]["Body"]
    assert "CorsConfiguration" not in api["Properties"]
    assert all("Cors" not in url["Properties"] for url in resources("AWS::Lambda::Url").values())
    function = resources("AWS::Lambda::Function")["Server"]
    assert function["Properties"]["Environment"]["Variables"]["MCP_ALLOWED_ORIGINS"] == {"Ref": "AllowedOrigins"}


def test_the_function_ends_before_the_api_gives_up() -> None:
    api_limit_seconds = 30

    assert parameters()["Timeout"]["MaxValue"] < api_limit_seconds
    assert parameters()["Timeout"]["Default"] <= parameters()["Timeout"]["MaxValue"]


@pytest.mark.parametrize("function", ["Server", "Worker"])
def test_logs_are_kept_for_a_bounded_time(function: str) -> None:
    logs = resources("AWS::Logs::LogGroup")[f"{function}Logs"]

    assert logs["Properties"]["RetentionInDays"] == {"Ref": "LogRetentionDays"}
    logging = resources("AWS::Lambda::Function")[function]["Properties"]["LoggingConfig"]
    assert logging["LogGroup"] == {"Ref": f"{function}Logs"}
    assert parameters()["LogRetentionDays"]["Default"] in parameters()["LogRetentionDays"]["AllowedValues"]


def statements(function: str) -> set[tuple[str, str]]:
    """What a function may do, and to which resource of the template."""
    role = f"{function}Role"
    policies = [*resources("AWS::IAM::Role")[role]["Properties"]["Policies"]]
    policies += [
        each["Properties"]
        for each in resources("AWS::IAM::RolePolicy").values()
        if each["Properties"]["RoleName"] == {"Ref": role}
    ]
    allowed = set()
    for policy in policies:
        for statement in policy["PolicyDocument"]["Statement"]:
            assert statement["Effect"] == "Allow"
            [resource, attribute] = statement["Resource"]["Fn::GetAtt"]
            assert attribute == "Arn"
            actions = statement["Action"]
            allowed |= {(action, resource) for action in ([actions] if isinstance(actions, str) else actions)}
    return allowed


def requests_to_aws(module: str) -> set[str]:
    """The operations that a module asks of its client, as IAM spells them."""
    calls = set(re.findall(r"self\._client\.(\w+)", (ROOT / "mcp_stateless" / "calls" / module).read_text()))
    return {"".join(part.title() for part in call.split("_")) for call in calls}


def test_the_server_may_write_its_own_logs_take_calls_in_and_start_the_worker_and_nothing_else() -> None:
    assert requests_to_aws("launch.py") == {"Invoke"}
    assert statements("Server") == {
        ("logs:CreateLogStream", "ServerLogs"),
        ("logs:PutLogEvents", "ServerLogs"),
        ("lambda:InvokeFunction", "Worker"),
        *((f"dynamodb:{operation}", "Calls") for operation in requests_to_aws("dynamodb.py")),
    }


def test_the_worker_may_write_its_own_logs_work_on_calls_and_report_lost_ones_and_nothing_else() -> None:
    assert statements("Worker") == {
        ("logs:CreateLogStream", "WorkerLogs"),
        ("logs:PutLogEvents", "WorkerLogs"),
        ("lambda:InvokeFunction", "Server"),
        *((f"dynamodb:{operation}", "Calls") for operation in requests_to_aws("dynamodb.py")),
    }


def test_without_polling_the_server_may_only_write_its_own_logs() -> None:
    for policy in resources("AWS::IAM::RolePolicy").values():
        assert policy["Condition"] == "UsePolling"
    [policy] = resources("AWS::IAM::Role")["ServerRole"]["Properties"]["Policies"]
    assert policy["PolicyName"] == "WriteOwnLogs"
    assert all("ManagedPolicyArns" not in role["Properties"] for role in resources("AWS::IAM::Role").values())


def test_what_long_calls_need_is_only_there_with_polling() -> None:
    of_a_json_server = {name for name, each in documents()["after"]["Resources"].items() if "Condition" not in each}

    assert of_a_json_server == {"Server", "ServerRole", "ServerLogs"}
    assert documents()["after"]["Conditions"]["UsePolling"] == {"Fn::Equals": [{"Ref": "Polling"}, "on"]}
    assert parameters()["Polling"]["Default"] == "off"
    assert parameters()["Polling"]["AllowedValues"] == ["off", "on"]


def test_polling_without_a_key_is_refused_before_anything_is_made() -> None:
    [reason] = Deployed(documents()["after"], Polling="on").refused()

    assert "SigningKeys" in reason
    assert Deployed(documents()["after"], Polling="on", SigningKeys="k" * 32).refused() == []
    assert Deployed(documents()["after"]).refused() == []


@pytest.mark.parametrize("keys", ["", "k" * 32, f"{'k' * 40},{'l' * 32}", "k" * 31, f"{'k' * 32},", f"{'k' * 40} x"])
def test_keys_are_taken_by_the_template_as_by_the_server(keys: str) -> None:
    def taken_by_the_server() -> bool:
        try:
            return len(Settings.from_environment({"MCP_SIGNING_KEYS": keys}).signing_keys) == len(keys.split(","))
        except ConfigurationError:
            return False

    taken = re.fullmatch(parameters()["SigningKeys"]["AllowedPattern"], keys) is not None
    # A space in a key is the server's to take, and most likely a slip.
    assert taken == (keys == "" or (taken_by_the_server() and " " not in keys))


LOCAL: Final = """
import sys
from samcli.commands.local.invoke import cli as command
from samcli.lib.providers.sam_function_provider import SamFunctionProvider
from samcli.lib.providers.sam_stack_provider import SamLocalStackProvider
from samcli.cli.main import cli

def invoke(context, name, template, *rest, **options):
    stacks, _ = SamLocalStackProvider.get_stacks(template)
    print(name, SamFunctionProvider(stacks).get(name).environment["Variables"]["MCP_POLLING"] or "unset")

command.do_cli = invoke
cli(["local", "invoke", "--template", "template.yaml", "--event", "events/ping.json"])
"""
"""`sam local invoke -e ...` up to the container, which there need not be here."""


def test_sam_local_invokes_the_server_with_polling_off_when_nothing_else_is_said() -> None:
    assert run_python("-c", LOCAL, cwd=ROOT).splitlines()[-1] == "Server unset"


def test_both_functions_are_the_same_code_that_is_told_where_the_calls_lie() -> None:
    functions = resources("AWS::Lambda::Function")
    server, worker = functions["Server"]["Properties"], functions["Worker"]["Properties"]

    for name in ("Handler", "Runtime", "Architectures", "Code"):
        assert server[name] == worker[name]
    assert (
        documents()["before"]["Resources"]["Server"]["Metadata"]
        == (documents()["before"]["Resources"]["Worker"]["Metadata"])
    )
    variables = server["Environment"]["Variables"]
    assert variables["MCP_POLLING"] == {"Fn::If": ["UsePolling", "dynamodb", ""]}
    assert variables["MCP_CALL_TABLE"] == {"Fn::If": ["UsePolling", {"Ref": "Calls"}, ""]}
    assert variables["MCP_WORKER_FUNCTION"] == {"Fn::If": ["UsePolling", {"Ref": "Worker"}, ""]}
    of_the_worker = worker["Environment"]["Variables"]
    assert (of_the_worker["MCP_POLLING"], of_the_worker["MCP_CALL_TABLE"]) == ("dynamodb", {"Ref": "Calls"})
    assert of_the_worker["MCP_SIGNING_KEYS"] == variables["MCP_SIGNING_KEYS"] == {"Ref": "SigningKeys"}


def test_a_worker_is_bounded_in_time_and_number() -> None:
    worker = resources("AWS::Lambda::Function")["Worker"]["Properties"]

    assert worker["Timeout"] == {"Ref": "WorkerTimeout"}
    assert parameters()["WorkerTimeout"]["MaxValue"] == 900
    assert worker["MemorySize"] == {"Ref": "WorkerMemorySize"}
    bound = {"Fn::If": ["BoundWorkers", {"Ref": "WorkerReservedConcurrency"}, {"Ref": "AWS::NoValue"}]}
    assert worker["ReservedConcurrentExecutions"] == bound
    assert parameters()["WorkerReservedConcurrency"]["Default"] == 0


def test_lambda_starts_a_worker_once_and_reports_to_the_server_when_that_came_to_nothing() -> None:
    [invocations] = resources("AWS::Lambda::EventInvokeConfig").values()

    assert invocations["Properties"] == {
        "FunctionName": {"Ref": "Worker"},
        "Qualifier": "$LATEST",
        "MaximumRetryAttempts": 0,
        "MaximumEventAgeInSeconds": 60,
        "DestinationConfig": {"OnFailure": {"Destination": {"Fn::GetAtt": ["Server", "Arn"]}}},
    }
    # Lambda refuses a destination that the function may not use.
    assert invocations["DependsOn"] == "WorkerCallsPolicy"


def test_the_table_is_the_one_that_the_store_makes_itself() -> None:
    class Recorder:
        """Takes what `create_table` asks for."""

        def __init__(self) -> None:
            self.asked: dict[str, Any] = {}

        def create_table(self, **request: object) -> dict[str, Any]:
            self.asked |= request
            return {}

        def update_time_to_live(self, **request: object) -> dict[str, Any]:
            self.asked |= request
            return {}

        def get_waiter(self, waiter_name: str) -> "Recorder":
            return self

        def wait(self, **request: object) -> None:
            """The table is there at once."""

    recorder = Recorder()
    create_table(recorder, "calls")
    [table] = resources("AWS::DynamoDB::Table").values()

    assert table["Properties"] == {name: value for name, value in recorder.asked.items() if name != "TableName"}
    assert table["DeletionPolicy"] == table["UpdateReplacePolicy"] == "Delete"


def test_workers_that_die_wait_or_are_dropped_raise_an_alarm() -> None:
    alarms = [each["Properties"] for each in resources("AWS::CloudWatch::Alarm").values()]

    assert {alarm["MetricName"] for alarm in alarms} == {"Errors", "Throttles", "AsyncEventsDropped"}
    for alarm in alarms:
        assert alarm["Namespace"] == "AWS/Lambda"
        assert alarm["Dimensions"] == [{"Name": "FunctionName", "Value": {"Ref": "Worker"}}]
        assert alarm["AlarmActions"] == {"Fn::If": ["NotifyOfAlarms", [{"Ref": "AlarmTopic"}], {"Ref": "AWS::NoValue"}]}


def test_keys_are_not_shown_and_not_needed() -> None:
    assert parameters()["SigningKeys"]["NoEcho"] is True
    assert parameters()["SigningKeys"]["Default"] == ""


def test_the_endpoint_is_an_output_for_either_kind() -> None:
    of_the_api, of_the_url = (
        Deployed(documents()["after"], Endpoint=kind).outputs()["McpEndpoint"] for kind in ("HttpApi", "FunctionUrl")
    )

    assert of_the_api["Fn::Sub"].startswith("https://${HttpApi}.execute-api.")
    assert of_the_api["Fn::Sub"].endswith("/mcp")
    assert of_the_url["Fn::Sub"] == "${FunctionUrl.FunctionUrl}mcp"


def without_description(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("Description:")]


def test_a_new_project_with_polling_gets_the_same_template(tmp_path: Path) -> None:
    generated = write_project("long-tools", tmp_path, polling=True).folder / "template.yaml"

    assert without_description(generated.read_text()) == without_description(TEMPLATE.read_text())


def test_a_new_project_without_polling_gets_what_json_needs_of_it(tmp_path: Path) -> None:
    generated = write_project("short-tools", tmp_path).folder / "template.yaml"

    lines = without_description(generated.read_text())
    whole = iter(without_description(TEMPLATE.read_text()))
    assert all(line in whole for line in lines), "it has no line that the whole template has not, and in the same order"
    assert not [line for line in lines if "Worker" in line or "POLLING" in line or "dynamodb" in line]
    assert "is a valid SAM Template" in sam("validate", "--lint", "--template", str(generated), cwd=tmp_path)
