"""Where the application stands in the caller's URL: stages, mappings and configured base paths, by whole segments."""

import json
from typing import Any

import pytest
from fastapi import FastAPI, Request

from mcp_stateless.aws import LambdaHandler
from mcp_stateless.settings import Settings
from mcp_stateless.testing import events

CUSTOM = "mcp.example.com"


def url_of_health(event: dict[str, Any], base_path: str = "") -> tuple[int, str]:
    """Ask the route `/health` for its own URL."""
    app = FastAPI()

    @app.get("/health")
    def health(request: Request) -> dict[str, str]:
        return {"url": str(request.url_for("health")), "here": str(request.url)}

    result = LambdaHandler(app, Settings(base_path=base_path))(event)
    if result["statusCode"] == 200:
        body = json.loads(result["body"])
        assert body["url"] == body["here"]
        return 200, body["url"]
    return result["statusCode"], ""


def event_without_domain() -> dict[str, Any]:
    event = events.http_api_event("GET", "/health", stage="prod")
    del event["requestContext"]["domainName"]
    return event


@pytest.mark.parametrize(
    ("event", "url"),
    [
        (events.http_api_event("GET", "/health"), f"https://{events.API_DOMAIN}/health"),
        (events.http_api_event("GET", "/health", stage="prod"), f"https://{events.API_DOMAIN}/prod/health"),
        (events.http_api_event("GET", "/health", stage="health"), f"https://{events.API_DOMAIN}/health/health"),
        (event_without_domain(), f"https://{events.API_DOMAIN}/prod/health"),
        (
            events.http_api_event("GET", "/health", stage="prod", route="GET /health"),
            f"https://{events.API_DOMAIN}/prod/health",
        ),
        (events.http_api_event("GET", "/health", stage="prod", domain=CUSTOM), f"https://{CUSTOM}/health"),
        (
            events.http_api_event("GET", "/v1/health", route="GET /health", domain=CUSTOM),
            f"https://{CUSTOM}/v1/health",
        ),
        (
            events.http_api_event(
                "GET", "/v1/health", route="ANY /{proxy+}", path_parameters={"proxy": "health"}, domain=CUSTOM
            ),
            f"https://{CUSTOM}/v1/health",
        ),
        (events.rest_api_event("GET", "/health"), f"https://{events.API_DOMAIN}/prod/health"),
        (events.rest_api_event("GET", "/health", resource="/health"), f"https://{events.API_DOMAIN}/prod/health"),
        (events.rest_api_event("GET", "/health", base_path="/v1", domain=CUSTOM), f"https://{CUSTOM}/v1/health"),
        (
            events.rest_api_event("GET", "/health", base_path="/health", resource="/health", domain=CUSTOM),
            f"https://{CUSTOM}/health/health",
        ),
        (events.function_url_event("GET", "/health"), f"https://{events.URL_DOMAIN}/health"),
        (events.alb_event("GET", "/health"), f"https://{events.ALB_DOMAIN}/health"),
    ],
)
def test_the_route_is_found_and_knows_its_public_url(event: dict[str, Any], url: str) -> None:
    assert url_of_health(event) == (200, url)


@pytest.mark.parametrize(
    ("event", "url"),
    [
        # No event of an HTTP API tells the mapping of its custom domain.
        (events.http_api_event("GET", "/health", domain=CUSTOM), f"https://{CUSTOM}/v1/health"),
        (events.http_api_event("GET", "/health", stage="prod", domain=CUSTOM), f"https://{CUSTOM}/v1/health"),
        (events.http_api_event("GET", "/health", stage="prod"), f"https://{events.API_DOMAIN}/prod/health"),
        (events.function_url_event("GET", "/v1/health"), f"https://{events.URL_DOMAIN}/v1/health"),
        (events.alb_event("GET", "/v1/health"), f"https://{events.ALB_DOMAIN}/v1/health"),
        (events.rest_api_event("GET", "/health", base_path="/v1", domain=CUSTOM), f"https://{CUSTOM}/v1/health"),
        (
            events.rest_api_event("GET", "/health", base_path="/v1", domain=CUSTOM) | {"pathParameters": None},
            f"https://{CUSTOM}/v1/health",
        ),
    ],
)
def test_a_configured_base_path_is_part_of_the_url(event: dict[str, Any], url: str) -> None:
    assert url_of_health(event, base_path="/v1") == (200, url)


@pytest.mark.parametrize(
    "event",
    [
        events.function_url_event("GET", "/v1health"),
        events.function_url_event("GET", "/v12/health"),
        events.http_api_event("GET", "/health") | {"rawPath": "/producthealth"},
    ],
)
def test_prefixes_are_taken_off_by_whole_segments_only(event: dict[str, Any]) -> None:
    event["requestContext"]["stage"] = "product"
    assert url_of_health(event, base_path="/v1") == (404, "")


def test_the_root_of_a_stage_is_the_root_of_the_application() -> None:
    app = FastAPI()

    @app.get("/")
    def root() -> dict[str, str]:
        return {}

    handler = LambdaHandler(app, Settings())
    for event in (
        events.http_api_event("GET", "/", stage="prod"),
        events.http_api_event("GET", "", stage="prod"),
        events.rest_api_event("GET", "/"),
    ):
        assert handler(event)["statusCode"] == 200
