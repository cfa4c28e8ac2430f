"""A tool as it is listed, and what is said about it at registration."""

import json
from typing import Annotated, Any, Literal

import mcp_types
import pytest
from pydantic import BaseModel, Field

from mcp_stateless.content import Icon, ToolAnnotations
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ConfigurationError


def search(q: str, limit: int = 10) -> list[str]:
    """Search the books.

    Args:
        q: words to look for
    """
    return []


def test_a_tool_is_listed_with_what_it_was_told_and_no_invented_hints() -> None:
    tool = Tool.from_function(search)
    assert tool.to_wire() == {
        "name": "search",
        "description": "Search the books.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "q": {"type": "string", "description": "words to look for"},
                "limit": {"type": "integer", "default": 10},
            },
            "required": ["q"],
        },
        "outputSchema": {"type": "array", "items": {"type": "string"}},
    }
    full = Tool.from_function(
        search,
        name="find",
        title="Find",
        description="Finds",
        annotations=ToolAnnotations(read_only_hint=True),
        icons=[Icon("data:,")],
        meta={"k": 1},
        in_thread=False,
    )
    wire = full.to_wire()
    assert wire["annotations"] == {"readOnlyHint": True}
    assert wire["icons"] == [{"src": "data:,"}]
    assert wire["_meta"] == {"k": 1}
    assert (wire["name"], wire["title"], wire["description"]) == ("find", "Find", "Finds")
    assert full.in_thread is False
    mcp_types.Tool.model_validate(wire)


# B95
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("search_2", []),
        ("a" * 40, []),
        ("a" * 41, ["longer than 40"]),
        ("a" * 64, ["longer than 40"]),
        ("a" * 128, ["longer than 40"]),
        ("a" * 129, ["longer than 40", "breaks the protocol's rule"]),
        ("a-b.c", ["only form"]),
        ("2a", ["only form"]),
        ("a/b", ["breaks the protocol's rule"]),
        ("a b", ["breaks the protocol's rule"]),
        ("工具", ["breaks the protocol's rule"]),
    ],
)
def test_names_that_hosts_refuse_are_warned_about_and_served(
    name: str, words: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    assert Tool.from_function(search, name=name).name == name
    assert len(caplog.records) == bool(words)
    for word in words:
        assert word in caplog.text
        assert repr(name) in caplog.text


def test_a_schema_over_the_limit_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    def f(choice: Literal["a"]) -> None: ...

    f.__annotations__["choice"] = Annotated[str, Field(description="é" * 8000)]
    Tool.from_function(f)
    assert caplog.text == ""
    f.__annotations__["choice"] = Annotated[str, Field(description="é" * 8200)]
    Tool.from_function(f)
    assert "16384" in caplog.text
    assert "'f'" in caplog.text


def test_composition_at_the_root_is_warned_about(caplog: pytest.LogCaptureFixture) -> None:
    def f(a: int | str) -> None: ...

    Tool.from_function(f)
    assert caplog.text == ""
    raw = {"type": "object", "properties": {"a": {}}, "allOf": [{"required": ["a"]}]}
    Tool.from_function(f, input_schema=raw)
    assert "allOf at the root" in caplog.text
    assert len(caplog.records) == 1


def header(name: Any) -> Any:
    return Field(json_schema_extra={"x-mcp-header": name})


class Where(BaseModel):
    zone: Annotated[str, header("Zone")] = "a"


def test_header_parameters_are_found_at_any_depth_of_properties() -> None:
    def f(region: Annotated[str, header("Region")], where: Where, count: Annotated[int | None, header("X-Count")] = None
          ) -> None: ...  # fmt: skip

    tool = Tool.from_function(f)
    assert tool.header_params == {"region": ("region",), "zone": ("where", "zone"), "x-count": ("count",)}
    assert '"x-mcp-header": "Region"' in json.dumps(tool.to_wire())
    assert Tool.from_function(search).header_params == {}


def test_a_property_may_have_the_keywords_name() -> None:
    raw = {"type": "object", "properties": {"x-mcp-header": {"type": "string", "default": {"x-mcp-header": 1}}}}

    def f(**arguments: object) -> None: ...

    assert Tool.from_function(f, input_schema=raw).header_params == {}


@pytest.mark.parametrize(
    ("annotation", "message"),
    [
        (Annotated[str, header("")], "no header name"),
        (Annotated[str, header("a b")], "no header name"),
        (Annotated[str, header("Ünï")], "no header name"),
        (Annotated[str, header(5)], "no header name"),
        (Annotated[float, header("N")], r"'value'.*string, integer, boolean"),
        (Annotated[dict[str, int], header("N")], "string, integer, boolean"),
        (Annotated[int | str, header("N")], "string, integer, boolean"),
        (Any, None),
        (list[Where], "through properties alone"),
        (Where | int, "through properties alone"),
    ],
)
def test_a_header_annotation_that_clients_refuse_is_refused(annotation: Any, message: str | None) -> None:
    def f(value: Any) -> None: ...

    f.__annotations__["value"] = annotation
    if message is None:
        assert Tool.from_function(f).header_params == {}
        return
    with pytest.raises(ConfigurationError, match=message):
        Tool.from_function(f)


def test_header_names_are_unique_whatever_their_case() -> None:
    def f(a: Annotated[str, header("Region")], b: Annotated[str, header("REGION")]) -> None: ...

    with pytest.raises(ConfigurationError, match="named twice"):
        Tool.from_function(f)


def test_a_header_annotation_at_the_root_or_in_a_definition_is_refused() -> None:
    def f(**arguments: object) -> None: ...

    for place in ({"x-mcp-header": "A"}, {"$defs": {"d": {"type": "string", "x-mcp-header": "A"}}}):
        with pytest.raises(ConfigurationError, match="through properties alone"):
            Tool.from_function(f, input_schema={"type": "object", "properties": {}, **place})
