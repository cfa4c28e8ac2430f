"""The tests an author of `docs/examples/weather.py` would write."""

# region client
from docs.examples.weather import forecast, lambda_handler
from mcp_stateless.testing import Client


def test_a_forecast_comes_in_the_unit_that_was_asked_for() -> None:
    result = Client(lambda_handler).call_tool("forecast", {"city": "Oslo", "unit": "fahrenheit"})

    assert result.structured_content == {"city": "Oslo", "temperature": 48.2, "unit": "fahrenheit"}


def test_an_unknown_city_is_an_error_that_names_the_known_ones() -> None:
    result = Client(lambda_handler).call_tool("forecast", {"city": "Atlantis"})

    assert result.is_error
    assert "Leipzig, Lisbon, Oslo" in result.text


def test_a_tool_is_still_a_plain_function() -> None:
    assert forecast("Lisbon").temperature == 27.5


# endregion


# region newest
def test_the_newest_revision_needs_no_handshake() -> None:
    client = Client(lambda_handler, source="function_url", protocol_version="2026-07-28")

    assert client.discover()["supportedVersions"] == ["2026-07-28"]
    assert [tool["name"] for tool in client.list_tools()] == ["forecast"]


# endregion


def test_the_resource_and_the_prompt_answer() -> None:
    client = Client(lambda_handler)

    [report] = client.read_resource("weather://Oslo")
    prompt = client.get_prompt("plan_a_day", {"city": "Oslo"})

    assert report["text"] == "Oslo: 9 degrees"
    assert "Call forecast for Oslo" in prompt["messages"][0]["content"]["text"]
