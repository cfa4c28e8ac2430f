"""One DynamoDB-compatible engine for all tests of calls, and the stores that keep the same promises."""

from collections.abc import Iterator
from uuid import uuid4

import boto3
import pytest

from mcp_stateless.calls.dynamodb import DynamoDBCallStore, create_table
from mcp_stateless.calls.memory import MemoryCallStore
from mcp_stateless.calls.store import CallStore
from tests.calls import engine as engines
from tests.calls.engine import Engine


def pytest_report_collectionfinish() -> str:
    return f"DynamoDB engine: {engines.chosen()}"


@pytest.fixture(scope="session")
def engine() -> Iterator[Engine]:
    """A running engine, to which the environment points every boto3 client of this process."""
    with engines.running() as engine, pytest.MonkeyPatch.context() as patch:
        patch.delenv("AWS_PROFILE", raising=False)
        for name, value in engine.environment.items():
            patch.setenv(name, value)
        yield engine


@pytest.fixture(scope="session")
def table(engine: Engine) -> str:
    """A table that all tests share: each call has an id of its own."""
    name = f"calls-{uuid4().hex[:8]}"
    create_table(boto3.client("dynamodb"), name)
    return name


@pytest.fixture(scope="session")
def dynamodb(table: str) -> DynamoDBCallStore:
    return DynamoDBCallStore(table)


@pytest.fixture(params=["memory", "dynamodb"])
def store(request: pytest.FixtureRequest) -> CallStore:
    if request.param == "memory":
        return MemoryCallStore()
    dynamodb: CallStore = request.getfixturevalue("dynamodb")
    return dynamodb
