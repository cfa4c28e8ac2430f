"""Several environments that share nothing: what Lambda does to a server, on one machine."""

# region fleet
from pathlib import Path

from mcp_stateless.testing import Client, Fleet, Subprocess

ROOT = Path(__file__).parents[2]
HANDLER = "docs.examples.weather:lambda_handler"


def test_any_environment_may_answer() -> None:
    with Fleet([Subprocess(HANDLER, cwd=ROOT) for _ in range(2)]) as fleet:
        fleet.warm_up()
        answers = [Client(fleet).call_tool("forecast", {"city": "Oslo"}).structured_content for _ in range(4)]

    assert answers == [{"city": "Oslo", "temperature": 9.0, "unit": "celsius"}] * 4


# endregion
