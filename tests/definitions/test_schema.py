"""Input schemas as clients see them."""

import datetime as dt
import enum
import json
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, Optional
from uuid import UUID

import pytest
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from mcp_stateless.context import Context
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ArgumentError, ConfigurationError


def schema_of(fn: Callable[..., Any], **options: Any) -> dict[str, Any]:
    schema = Tool.from_function(fn, name="tool_under_test", **options).to_wire()["inputSchema"]
    assert isinstance(schema, dict)
    Draft202012Validator.check_schema(schema)
    json.dumps(schema, allow_nan=False)
    return schema


class Color(enum.Enum):
    red = "r"
    blue = "b"


class Point(BaseModel):
    x: int
    y: int = 0


class Node(BaseModel):
    value: int
    children: "list[Node]" = []


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]
    friend: Optional[Cat] = None  # noqa: UP045  # the spelling under test


class Options(TypedDict, total=False):
    limit: int


@dataclass
class Size:
    width: int
    height: float = 1.0


UserId = NewType("UserId", int)


# B82
def test_only_parameters_without_a_default_are_required() -> None:
    def f(q: str, days: Optional[int] = 30, tags: list[str] | None = None) -> None: ...  # noqa: UP045

    schema = schema_of(f)
    assert schema["required"] == ["q"]
    assert schema["properties"]["days"] == {"type": "integer", "default": 30}
    assert schema["properties"]["tags"] == {"type": "array", "items": {"type": "string"}}


# B88
def test_an_optional_type_is_written_flat_at_every_depth() -> None:
    class Inner(BaseModel):
        note: str | None = None

    def f(days: int | None = None, inner: Inner | None = None, must: str | None = Field()) -> None: ...

    schema = schema_of(f)
    assert "anyOf" not in json.dumps(schema)
    assert schema["properties"]["days"] == {"type": "integer"}
    assert schema["required"] == ["must"]


def test_a_union_of_two_types_and_none_keeps_the_two() -> None:
    def f(value: int | str | None = None) -> None: ...

    assert schema_of(f)["properties"]["value"] == {"anyOf": [{"type": "integer"}, {"type": "string"}]}


# B89
def test_references_are_inlined_except_for_recursion() -> None:
    def f(color: Color, a: Point, b: Point, many: list[Point], pet: Annotated[Cat | Dog, Field(discriminator="kind")],
          tree: Node) -> None: ...  # fmt: skip

    schema = schema_of(f)
    assert schema["type"] == "object"
    assert list(schema["$defs"]) == ["Node"]
    text = json.dumps(schema)
    assert text.count('"$ref"') == text.count('"#/$defs/Node"')
    assert schema["properties"]["color"] == {"type": "string", "enum": ["r", "b"]}
    assert schema["properties"]["a"]["properties"]["x"] == {"type": "integer"}
    assert "discriminator" not in schema["properties"]["pet"]
    Draft202012Validator(schema).validate(
        {"color": "r", "a": {"x": 1}, "b": {"x": 1}, "many": [], "pet": {"kind": "dog"},
         "tree": {"value": 1, "children": [{"value": 2}]}}
    )  # fmt: skip


def test_there_are_no_automatic_titles_but_an_authors_own_stay() -> None:
    def f(
        a: Point, size: Size, options: Options, color: Color, b: Annotated[int, Field(title="The B")] = 1
    ) -> None: ...

    text = json.dumps(schema_of(f))
    assert text.count('"title"') == 1
    assert '"title": "The B"' in text


# B92
def test_an_untyped_parameter_has_no_type() -> None:
    def f(request, anything: Any, thing: object, table: dict, rows: list) -> None: ...  # type: ignore[no-untyped-def, type-arg]

    properties = schema_of(f)["properties"]
    assert properties["request"] == properties["anything"] == properties["thing"] == {}
    assert properties["table"]["type"] == "object"
    assert properties["rows"]["type"] == "array"


# B92
def test_an_unsupported_class_is_refused_with_function_parameter_and_fix() -> None:
    class Connection:
        pass

    def f(good: int, connection: Connection) -> None: ...

    with pytest.raises(ConfigurationError, match=r"tool_under_test.*'connection'.*Annotate"):
        Tool.from_function(f, name="tool_under_test")


# B93
def test_literals_enums_and_constraints_are_in_the_schema() -> None:
    def f(
        choice: Literal["a", 1, True],
        color: Color = Color.red,
        count: int = Field(3, ge=1, description="how many"),
        names: list[str] = Field(default_factory=list),  # noqa: B008
        ratio: Annotated[float, Field(gt=0, le=1)] = 0.5,
    ) -> None: ...

    schema = schema_of(f)
    assert schema["required"] == ["choice"]
    assert schema["properties"] == {
        "choice": {"enum": ["a", 1, True]},
        "color": {"type": "string", "enum": ["r", "b"], "default": "r"},
        "count": {"type": "integer", "minimum": 1, "default": 3, "description": "how many"},
        "names": {"type": "array", "items": {"type": "string"}},
        "ratio": {"type": "number", "exclusiveMinimum": 0, "maximum": 1, "default": 0.5},
    }


# B93
def test_defaults_are_json_values() -> None:
    def f(
        when: dt.datetime = dt.datetime(2026, 1, 2, tzinfo=dt.UTC),
        ident: UUID = UUID(int=1),  # noqa: B008
        price: Decimal = Decimal("1.50"),
        where: Path = Path("/data"),
        size: Size = Size(1),  # noqa: B008
        user: UserId = UserId(7),
    ) -> None: ...

    properties = schema_of(f)["properties"]
    assert {name: node["default"] for name, node in properties.items()} == {
        "when": "2026-01-02T00:00:00Z",
        "ident": "00000000-0000-0000-0000-000000000001",
        "price": "1.50",
        "where": "/data",
        "size": {"width": 1, "height": 1.0},
        "user": 7,
    }
    assert properties["user"]["type"] == "integer"


# B93
def test_collections_dataclasses_and_typed_dicts_are_expressed() -> None:
    def f(unique: set[int], pair: tuple[int, str], options: Options, size: Size, alias: list[UserId]) -> None: ...

    properties = schema_of(f)["properties"]
    assert properties["unique"] == {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}
    assert properties["pair"]["prefixItems"] == [{"type": "integer"}, {"type": "string"}]
    assert properties["options"] == {"type": "object", "properties": {"limit": {"type": "integer"}}}
    assert properties["size"]["required"] == ["width"]


def test_a_default_without_a_json_form_is_left_out_and_still_applied() -> None:
    marker = object()

    def f(value: Any = marker) -> None: ...

    tool = Tool.from_function(f)
    assert "default" not in tool.input_schema["properties"]["value"]
    assert tool.signature.bind({}) == {"value": marker}


def test_a_mutable_default_is_not_shared_between_calls() -> None:
    def f(rows: list[int] = []) -> None: ...  # noqa: B006

    signature = Tool.from_function(f).signature
    rows = signature.bind({})["rows"]
    assert isinstance(rows, list)
    rows.append(1)
    assert signature.bind({}) == {"rows": []}


# B91
def test_awkward_names_work_and_keywords_through_an_alias() -> None:
    def f(
        _x: int, model_config: int, schema: str, json: str, copy: str, self_: int, klass: int = Field(1, alias="class")
    ) -> None: ...

    tool = Tool.from_function(f)
    assert list(tool.input_schema["properties"]) == ["_x", "model_config", "schema", "json", "copy", "self_", "class"]
    given = {"_x": 1, "model_config": 2, "schema": "s", "json": "j", "copy": "c", "self_": 3, "class": 4}
    bound = tool.signature.bind(given)
    assert bound["klass"] == 4
    assert bound["model_config"] == 2


def test_a_pattern_that_no_engine_reads_is_refused() -> None:
    def f(good: int, code: Annotated[str, Field(pattern="(")]) -> None: ...

    with pytest.raises(ConfigurationError, match=r"'f'.*'code'"):
        Tool.from_function(f)


def test_two_parameters_with_one_alias_are_refused() -> None:
    def f(a: int = Field(alias="c"), b: int = Field(alias="c")) -> None: ...

    with pytest.raises(ConfigurationError, match="same alias"):
        Tool.from_function(f)


def test_a_function_without_parameters_takes_an_empty_object() -> None:
    def f() -> None: ...

    assert schema_of(f) == {"type": "object", "properties": {}}


def test_the_raw_schema_reaches_the_list_untouched() -> None:
    raw = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "zzz-unknown": {"kept": True},
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object"}},
        "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"}},
        "if": {"required": ["name"]},
        "additionalProperties": False,
    }

    def f(name: str = "", address: dict[str, Any] | None = None) -> None: ...

    tool = Tool.from_function(f, input_schema=raw)
    assert json.dumps(tool.to_wire()["inputSchema"]) == json.dumps(raw)
    assert tool.signature.bind({"name": "n"}) == {"name": "n", "address": None}


def test_a_raw_schema_may_serve_a_function_without_parameters_or_with_any() -> None:
    raw = {"type": "object", "properties": {"a": {"type": "integer"}, "class": {}}}

    def none() -> None: ...
    def every(**arguments: object) -> None: ...

    assert Tool.from_function(none, input_schema=raw).signature.bind({"a": 1}) == {}
    assert Tool.from_function(every, input_schema=raw).signature.bind({"a": 1, "class": 2}) == {"a": 1, "class": 2}


def test_a_raw_schema_takes_only_untyped_keywords_that_are_not_the_context() -> None:
    raw = {"type": "object", "properties": {"ctx": {}}}

    def typed(**arguments: int) -> None: ...
    def clashing(ctx: Context[Any], **arguments: Any) -> None: ...
    def free(context: Context[Any], **arguments: Any) -> None: ...

    with pytest.raises(ConfigurationError, match="annotate it with object"):
        Tool.from_function(typed, input_schema=raw)
    with pytest.raises(ConfigurationError, match="'ctx' is also a property"):
        Tool.from_function(clashing, input_schema=raw)
    signature = Tool.from_function(free, input_schema=raw).signature
    assert signature.bind({"ctx": 1}) == {"ctx": 1}
    with pytest.raises(ArgumentError, match="context: unknown argument"):
        signature.bind({"context": 1})


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"properties": {"a": {}}}, '"type": "object"'),
        ({"type": "object", "properties": {}}, "no property for the parameters a"),
        ({"type": "object", "properties": {"a": {}, "b": {}}}, "without a parameter: b"),
        ({"type": "object", "properties": {"a": {"default": {1, 2}}}}, "not JSON"),
        ({"type": "object", "properties": {"a": {"$ref": "https://example.com/s.json"}}}, "local"),
    ],
)
def test_a_raw_schema_that_does_not_fit_the_function_is_refused(raw: dict[str, Any], message: str) -> None:
    def f(a: int) -> None: ...

    with pytest.raises(ConfigurationError, match=message):
        Tool.from_function(f, input_schema=raw)
