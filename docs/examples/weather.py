"""A tool with a model, an error the model can act on, a resource, a prompt and the wiring for Lambda."""

# region server
from typing import Annotated, Literal

from pydantic import BaseModel, Field

from mcp_stateless import MCPServer, ToolError

server = MCPServer("weather", version="1.0.0", instructions="Forecasts for three cities.")
# endregion

FORECASTS = {"Leipzig": 18.0, "Lisbon": 27.5, "Oslo": 9.0}


# region tool
class Forecast(BaseModel):
    city: str
    temperature: float = Field(description="In the unit that was asked for")
    unit: Literal["celsius", "fahrenheit"]


@server.tool()
def forecast(
    city: Annotated[str, Field(description="Leipzig, Lisbon or Oslo")],
    unit: Literal["celsius", "fahrenheit"] = "celsius",
) -> Forecast:
    """Tell tomorrow's highest temperature in a city."""
    celsius = FORECASTS.get(city)
    if celsius is None:
        raise ToolError(f"There is no forecast for {city!r}. Cities: {', '.join(FORECASTS)}")
    return Forecast(city=city, temperature=celsius if unit == "celsius" else celsius * 1.8 + 32, unit=unit)


# endregion


# region resource
@server.resource("weather://{city}", mime_type="text/plain")
def station(city: str) -> str:
    """The last report of a city's station."""
    return f"{city}: {FORECASTS[city]:g} degrees" if city in FORECASTS else f"{city}: no station"


@server.prompt()
def plan_a_day(city: str) -> str:
    """Plan a day outside."""
    return f"Call forecast for {city}, then plan a day outside that suits the weather."


# endregion


# region wiring
app = server.app()
lambda_handler = server.lambda_handler(app)
# endregion
