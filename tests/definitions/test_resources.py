"""Resources and templates: registration, listing, contents."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types
import pytest

from mcp_stateless.content import Annotations, BlobResourceContents, Icon, TextResourceContents
from mcp_stateless.context import Context
from mcp_stateless.definitions.resource import Resource, ResourceTemplate
from mcp_stateless.errors import ConfigurationError, InvalidParams, ToolError


def guide() -> str:
    """The guide."""
    return "text"


def by_id(id: int, ctx: Context[Any], verbose: bool = False) -> str:
    """One thing.

    Args:
        id: its number
    """
    return f"{id} {verbose}"


def test_a_resource_lists_what_it_was_told() -> None:
    resource = Resource.from_function(
        guide,
        uri="docs://guide",
        title="Guide",
        mime_type="text/markdown",
        icons=[Icon("https://example.com/i.png")],
        annotations=Annotations(priority=1),
        meta={"k": 1},
        size=4,
    )
    wire = resource.to_wire()
    assert wire == {
        "uri": "docs://guide",
        "name": "guide",
        "title": "Guide",
        "description": "The guide.",
        "mimeType": "text/markdown",
        "annotations": {"priority": 1},
        "icons": [{"src": "https://example.com/i.png"}],
        "_meta": {"k": 1},
        "size": 4,
    }
    mcp_types.Resource.model_validate(wire)
    assert Resource.from_function(guide, uri="docs://guide").to_wire() == {
        "uri": "docs://guide",
        "name": "guide",
        "description": "The guide.",
    }


def test_a_template_lists_itself_and_reads_its_variables_as_their_types() -> None:
    template = ResourceTemplate.from_function(by_id, uri_template="things://{id}{?verbose}", description="Things")
    wire = template.to_wire()
    assert wire == {"uriTemplate": "things://{id}{?verbose}", "name": "by_id", "description": "Things"}
    mcp_types.ResourceTemplate.model_validate(wire)
    variables = template.match("things://7?verbose=true")
    assert variables == {"id": "7", "verbose": "true"}
    assert template.bind(variables) == {"id": 7, "verbose": True}
    assert (template.context_parameter, template.context_type) == ("ctx", Context)
    assert template.bind({"id": "7"}) == {"id": 7, "verbose": False}


def test_a_value_that_does_not_fit_its_parameter_is_no_match() -> None:
    template = ResourceTemplate.from_function(by_id, uri_template="things://{id}")
    assert template.match("things://seven") is None
    with pytest.raises(InvalidParams, match="id: should be a valid integer"):
        template.bind({"id": "seven"})


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("text", {"mimeType": "text/plain", "text": "text"}),
        (b"\x00", {"mimeType": "application/octet-stream", "blob": "AA=="}),
        ({"a": "日"}, {"mimeType": "application/json", "text": '{"a":"日"}'}),
        ([1, 2], {"mimeType": "application/json", "text": "[1,2]"}),
        ([], {"mimeType": "application/json", "text": "[]"}),
        (None, {"mimeType": "application/json", "text": "null"}),
        (Path("/a"), {"mimeType": "application/json", "text": '"/a"'}),
    ],
)
def test_contents_say_what_they_are(value: object, expected: dict[str, object]) -> None:
    resource = Resource.from_function(guide, uri="docs://guide")
    (contents,) = resource.contents(value)
    assert contents == {"uri": "docs://guide", **expected}
    mcp_types.ReadResourceResult.model_validate({"contents": [contents], "ttlMs": 0, "cacheScope": "private"})


def test_a_declared_mime_type_wins() -> None:
    resource = Resource.from_function(guide, uri="docs://guide", mime_type="image/png")
    assert resource.contents(b"x")[0]["mimeType"] == "image/png"


def test_ready_contents_are_passed_on() -> None:
    template = ResourceTemplate.from_function(by_id, uri_template="things://{id}")
    text, blob = TextResourceContents("docs://other", "t"), BlobResourceContents("docs://b", b"\x00", "image/png")
    assert template.contents(text, "things://1") == [{"uri": "docs://other", "text": "t"}]
    assert [item["uri"] for item in template.contents([text, blob], "things://1")] == ["docs://other", "docs://b"]
    assert template.contents("x", "things://1")[0]["uri"] == "things://1"


def test_contents_that_json_cannot_carry_are_refused() -> None:
    resource = Resource.from_function(guide, uri="docs://guide")
    for value in ("\ud800", {"a": float("nan")}, object()):
        with pytest.raises(ToolError, match="JSON"):
            resource.contents(value)


@pytest.mark.parametrize(
    ("uri", "fn", "message"),
    [
        ("guide", guide, "starts with a scheme"),
        ("docs://{id}", guide, "ResourceTemplate"),
        ("docs://guide", by_id, "takes id, verbose, and this URI gives no values"),
    ],
)
def test_a_resource_that_cannot_be_read_is_refused(uri: str, fn: Callable[..., Any], message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        Resource.from_function(fn, uri=uri)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("docs://{other}", "no parameter other"),
        ("docs://{verbose}", "nothing in it gives the parameter id"),
        ("docs://x{?id}", "a query may leave out id"),
        ("docs://{#id}", "position 7"),
        ("{id}", "starts with a scheme"),
    ],
)
def test_a_template_and_its_function_must_agree(template: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message):
        ResourceTemplate.from_function(by_id, uri_template=template)
