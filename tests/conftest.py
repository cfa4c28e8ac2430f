"""Fixtures of every folder: the two weights of a server's handler, which must behave the same."""

import pytest

from tests.http.door import Weight

WEIGHTS: dict[str, Weight] = {
    "endpoint alone": lambda server: server.lambda_handler(),
    "FastAPI app": lambda server: server.lambda_handler(server.app()),
}


@pytest.fixture(params=WEIGHTS)
def weight(request: pytest.FixtureRequest) -> Weight:
    return WEIGHTS[request.param]
