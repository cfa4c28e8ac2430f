"""What a cold start loads: read in a fresh process, after a tool was called over the JSON path."""

import json
import subprocess
import sys
import textwrap

import pytest

SERVER = """
    import json, sys
    from mcp_stateless import MCPServer

    server = MCPServer("sample", "1")

    @server.tool()
    def add(a: int, b: int) -> int:
        "Add two numbers."
        return a + b

    handler = server.lambda_handler({app})
    context = {{"http": {{"method": "POST", "path": "/mcp", "sourceIp": "192.0.2.1"}}, "stage": "$default"}}
    params = {{"name": "add", "arguments": {{"a": 1, "b": 2}}}}
    message = {{"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}}
    event = {{
        "version": "2.0", "routeKey": "$default", "rawPath": "/mcp", "rawQueryString": "", "requestContext": context,
        "headers": {{"content-type": "application/json"}}, "body": json.dumps(message), "isBase64Encoded": False,
    }}
    result = handler(event, None)
    assert json.loads(result["body"])["result"]["content"][0]["text"] == "3", result
    print(json.dumps(sorted(sys.modules)))
"""

NEVER = (
    "boto3",
    "botocore",
    "click",
    "cookiecutter",
    "cryptography",
    "httpx",
    "httpx2",
    "jinja2",
    "jsonschema",
    "mcp",
    "mcp_types",
    "mcp_stateless.cli",
    "mcp_stateless.testing",
    "requests",
    "unittest",
    "uvicorn",
)


def loaded(app: str) -> set[str]:
    code = textwrap.dedent(SERVER.format(app=app))
    ran = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, timeout=60)
    assert ran.returncode == 0, ran.stderr
    found: list[str] = json.loads(ran.stdout)
    return set(found)


@pytest.mark.parametrize("app", ["", "server.app()"])
def test_a_call_over_json_loads_nothing_it_does_not_need(app: str) -> None:
    assert not loaded(app) & set(NEVER)


def test_the_endpoint_alone_loads_no_web_framework() -> None:
    modules = loaded("")
    assert not modules & {"fastapi", "starlette", "mcp_stateless.http", "anyio"}


def test_importing_the_package_loads_neither_mangum_nor_a_framework() -> None:
    code = "import json, sys, mcp_stateless; print(json.dumps(sorted(sys.modules)))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert not set(json.loads(ran.stdout)) & {"mangum", "fastapi", "starlette", *NEVER}
