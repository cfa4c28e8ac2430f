"""Four environments that share nothing but a signing key, and a record of which one answered what."""

import base64
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from mcp_stateless.testing import Fleet, Subprocess

ROOT: Final = Path(__file__).parents[2]
ENVIRONMENTS: Final = 4
SIGNING_KEY: Final = "one key for every environment of these tests"
SCENARIO_HEADER: Final = "x-scenario"
"""Clients that run several scenarios in one process say with it which one a request belongs to."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request as the function saw it; `method` is the one of the JSON-RPC message in it."""

    environment: int
    scenario: str
    verb: str
    method: str | None
    status: int
    headers: dict[str, str]

    def __str__(self) -> str:
        return self.method or f"{self.verb} {self.status}"


@dataclass(slots=True)
class Log:
    """The requests since the last `clear`, in the order in which they were answered."""

    requests: list[Request] = field(default_factory=list)

    def clear(self) -> None:
        """Start a new list; a request that is still under way goes into the old one."""
        self.requests = []


class Recorded:
    """An environment that writes down what it answered."""

    def __init__(self, environment: Subprocess, index: int, log: Log) -> None:
        self._environment = environment
        self._index = index
        self._log = log

    def close(self) -> None:
        self._environment.close()

    def invoke(self, event: Any, context_ms: int = 30_000) -> Any:
        requests = self._log.requests
        result = self._environment.invoke(event, context_ms)
        if "headers" in event or "multiValueHeaders" in event:
            headers = _headers(event)
            status = int(result["statusCode"])
            scenario = headers.get(SCENARIO_HEADER, "")
            requests.append(Request(self._index, scenario, _verb(event), _method(event), status, headers))
        return result


def fleet_of_processes(log: Log) -> Fleet:
    """The environments take turns, so that no two requests in a row find the same one."""
    return Fleet([Recorded(process(index), index, log) for index in range(ENVIRONMENTS)])


def process(index: int) -> Subprocess:
    variables = {"MCP_SIGNING_KEYS": SIGNING_KEY, "ENVIRONMENT": str(index)}
    return Subprocess("tests.clients.server:lambda_handler", env=variables, cwd=ROOT)


def _headers(event: Any) -> dict[str, str]:
    single = event.get("headers") or {}
    many = {name: values[-1] for name, values in (event.get("multiValueHeaders") or {}).items()}
    return {name.lower(): value for name, value in {**many, **single}.items()}


def _verb(event: Any) -> str:
    return str(event["httpMethod"] if "httpMethod" in event else event["requestContext"]["http"]["method"])


def _method(event: Any) -> str | None:
    body = event.get("body")
    if not body:
        return None
    text = base64.b64decode(body) if event.get("isBase64Encoded") else body
    return str(json.loads(text)["method"])
