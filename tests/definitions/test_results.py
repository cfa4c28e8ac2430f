"""What a tool returned, as content and structured content that agree with the output schema and with each other."""

import base64
import dataclasses
import datetime as dt
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, computed_field, field_serializer
from typing_extensions import TypedDict

from mcp_stateless.content import (
    Audio,
    CallToolResult,
    EmbeddedResource,
    Image,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from mcp_stateless.definitions.output import MISSING, ToolResult
from mcp_stateless.definitions.structured import object_output_schema, object_structured
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ConfigurationError, ToolError

NOTHING: Any = object()


def tool(returns: Any = NOTHING, **options: Any) -> Tool:
    def f() -> Any: ...

    del f.__annotations__["return"]
    if returns is not NOTHING:
        f.__annotations__["return"] = returns
    return Tool.from_function(f, name="maker", **options)


def convert(value: object, returns: Any = NOTHING) -> ToolResult:
    """The result, checked for what must hold for every result."""
    made = tool(returns)
    result = made.result(value)
    text = json.dumps(result.content, ensure_ascii=False, allow_nan=False)
    text.encode()
    if made.output_schema is None:
        return result
    schema = dict(made.output_schema)
    Draft202012Validator.check_schema(schema)
    Draft202012Validator(schema).validate(result.structured)
    wrapped = object_output_schema(schema)
    assert wrapped["type"] == "object"
    Draft202012Validator(wrapped).validate(object_structured(schema, result.structured))
    (block,) = result.content
    if isinstance(result.structured, str):
        assert block == {"type": "text", "text": result.structured}
    else:
        assert json.loads(str(block["text"])) == result.structured
    return result


def failure(value: object, returns: Any = NOTHING) -> str:
    with pytest.raises(ToolError) as caught:
        tool(returns).result(value)
    text = str(caught.value)
    assert "'maker'" in text
    assert "s3cr3t" not in text
    return text


class Color(Enum):
    red = "r"


class Kind(str, Enum):  # noqa: UP042  # the spelling under test
    big = "b"


class Point(BaseModel):
    x: int = Field(alias="ex", ge=0)
    note: str | None = None


class Coded(BaseModel):
    model_config = ConfigDict(regex_engine="python-re")
    code: str = Field(pattern="^(?=a).b$")


class Node(BaseModel):
    value: int
    children: "list[Node]" = []


class Area(BaseModel):
    side: int

    @computed_field
    def square(self) -> int:
        return self.side**2


@dataclass
class Size:
    width: Annotated[int, Field(ge=0)]
    names: list[str] = dataclasses.field(default_factory=list)


class Options(TypedDict, total=False):
    limit: int


class Pair(NamedTuple):
    left: int
    right: str = "r"


# B99
def test_a_plain_text_result_is_not_sent_a_second_time_as_structured_content() -> None:
    assert convert("text", str).structured is MISSING


@pytest.mark.parametrize(
    ("returns", "value", "structured"),
    [
        (int, 5, 5),
        (float, 1, 1.0),
        (bool, True, True),
        (list[int], [1, 2], [1, 2]),
        (list[str], [], []),
        (dict[str, int], {"a": 1}, {"a": 1}),
        (dict, {1: "a"}, {"1": "a"}),
        (Point | None, None, None),
        (Point | None, Point(ex=1), {"ex": 1, "note": None}),
        (Point, {"ex": 2, "note": "n"}, {"ex": 2, "note": "n"}),
        (list[Point], [Point(ex=1)], [{"ex": 1, "note": None}]),
        (Node, Node(value=1, children=[Node(value=2)]), {"value": 1, "children": [{"value": 2, "children": []}]}),
        (Area, Area(side=3), {"side": 3, "square": 9}),
        (Size, Size(1), {"width": 1, "names": []}),
        (Options, {}, {}),
        (Pair, Pair(1), [1, "r"]),
        (tuple[int, str], (1, "a"), [1, "a"]),
        (int | str, "5", "5"),
        (Literal["a", 1], 1, 1),
        (Color, Color.red, "r"),
        (Kind, Kind.big, "b"),
        (dict[Color, int], {Color.red: 1}, {"r": 1}),
        (set[int], {1}, [1]),
        (frozenset[str], frozenset("a"), ["a"]),
        (Decimal, Decimal("1E+5"), "1E+5"),
        (dt.datetime, dt.datetime(2026, 1, 2, tzinfo=dt.UTC), "2026-01-02T00:00:00Z"),
        (dt.timedelta, dt.timedelta(seconds=3), "PT3S"),
        (UUID, UUID(int=1), "00000000-0000-0000-0000-000000000001"),
        (Path, Path("/tmp/x"), "/tmp/x"),
        (Annotated[int, Field(le=9)], 9, 9),
        (Coded, Coded(code="ab"), {"code": "ab"}),
    ],
)
def test_an_annotated_result_is_structured_and_says_the_same_as_text(
    returns: Any, value: object, structured: object
) -> None:
    result = convert(value, returns)
    assert result.structured == structured
    assert type(result.structured) is type(structured)


# B99
@pytest.mark.parametrize(
    ("returns", "value", "where"),
    [
        (int, "s3cr3t", "str does not fit"),
        (list[int], [1, "s3cr3t"], "[1]: str does not fit"),
        (Point, {"ex": -1}, "ex: int does not fit"),
        (Point, {}, "ex: missing"),
        (Point, Point.model_construct(x=-1, note="s3cr3t"), "ex: int does not fit"),
        (Point, Point.model_construct(x="s3cr3t"), "ex: str does not fit"),
        (Size, Size("s3cr3t"), "width: str does not fit"),  # type: ignore[arg-type]
        (Size, Size(-1), "width: int does not fit"),
        (Coded, Coded.model_construct(code="s3cr3t"), "code: str does not fit"),
        (Options, {"limit": "s3cr3t"}, "limit: str does not fit"),
        (Literal["a"], "s3cr3t", "str does not fit"),
        (Pair, (1, "r", "s3cr3t"), "does not fit"),
        (dict[str, Size], {"k": Size(-1)}, "k.width: int does not fit"),
    ],
)
def test_a_value_that_breaks_its_own_type_is_an_error_that_names_the_place(
    returns: Any, value: object, where: str
) -> None:
    assert where in failure(value, returns)


def test_a_serializer_that_lies_about_its_type_is_caught() -> None:
    class Liar(BaseModel):
        x: int

        @field_serializer("x")
        def as_text(self, value: int) -> int:
            return "s3cr3t"  # type: ignore[return-value]

    assert "x: str does not fit" in failure(Liar(x=1), Liar)


def test_a_serializer_that_fails_is_a_tool_error_without_its_text() -> None:
    class Broken(BaseModel):
        x: int

        @field_serializer("x")
        def fail(self, value: int) -> int:
            raise ValueError("s3cr3t")

    assert "Broken" in failure(Broken(x=1), Broken)


# B100
@pytest.mark.parametrize(("number", "word"), [(math.nan, "NaN"), (math.inf, "Infinity"), (-math.inf, "-Infinity")])
@pytest.mark.parametrize(
    ("returns", "wrap", "where"),
    [
        (float, lambda n: n, ""),
        (list[float], lambda n: [1.0, n], " at [1]"),
        (dict, lambda n: {"col": {"row": n}}, " at col.row"),
        (dict[str, Any], lambda n: {"col": [n]}, " at col[0]"),
        (NOTHING, lambda n: {"col": [n]}, " at col[0]"),
        (Any, lambda n: n, ""),
    ],
)
def test_numbers_that_json_has_not_are_named(
    number: float, word: str, returns: Any, wrap: Callable[[float], object], where: str
) -> None:
    assert f"returned {word}{where}, which JSON cannot carry" in failure(wrap(number), returns)


# B100
def test_nan_behind_an_untyped_field_of_a_model_is_named_too() -> None:
    class Loose(BaseModel):
        anything: Any
        missing: int | None = None

    assert "NaN at anything.deep" in failure(Loose(anything={"deep": math.nan}), Loose)
    assert convert(Loose(anything=None), Loose).structured == {"anything": None, "missing": None}


# B102
@pytest.mark.parametrize("returns", [dict[str, str], NOTHING, Any])
def test_text_has_real_characters(returns: Any) -> None:
    (block,) = convert({"t": "日本語 🎉"}, returns).content
    assert block["text"] == '{"t":"日本語 🎉"}'


@pytest.mark.parametrize(
    ("returns", "value"),
    [(str, "a\ud800"), (list[str], ["\udfff"]), (NOTHING, {"\ud800": 1}), (NOTHING, TextContent("\ud800"))],
)
def test_lone_surrogates_are_refused(returns: Any, value: object) -> None:
    assert "lone surrogate" in failure(value, returns)


class Opaque:
    def __repr__(self) -> str:
        return "s3cr3t"


@pytest.mark.parametrize("returns", [NOTHING, Any, dict[str, Any], list[Any]])
def test_an_object_without_a_json_form_is_named_by_its_type(returns: Any) -> None:
    value: object = [Opaque()] if returns == list[Any] else {"a": [Opaque()]}
    assert "type Opaque" in failure(value, returns)


@pytest.mark.parametrize("returns", [NOTHING, list])
def test_a_value_that_contains_itself_is_refused(returns: Any) -> None:
    circle: list[Any] = []
    circle.append(circle)
    assert "contains itself" in failure(circle, returns)


def test_bytes_that_are_no_text_inside_data_are_refused() -> None:
    assert "could not be turned into JSON" in failure({"a": b"\xff"})


def test_content_is_passed_on_as_blocks() -> None:
    link = ResourceLink("docs://a", "a")
    embedded = EmbeddedResource(TextResourceContents("docs://b", "text"))
    result = convert(["hello", Image(data=b"png"), link, embedded, {"a": 1}, Audio(data=b"wav")])
    assert result.structured is MISSING
    assert [block["type"] for block in result.content] == [
        "text",
        "image",
        "resource_link",
        "resource",
        "text",
        "audio",
    ]
    assert result.content[1] == {"type": "image", "data": "cG5n", "mimeType": "image/png"}
    assert result.content[4]["text"] == '{"a":1}'


@pytest.mark.parametrize(
    "returns",
    [NOTHING, None, Any, object, Image, Image | None, list[TextContent], list[str | Image], bytes, CallToolResult],
)
def test_content_and_open_annotations_have_no_output_schema(returns: Any) -> None:
    assert tool(returns).output_schema is None
    assert tool(returns).result(Image(data=b"x")).structured is MISSING


def test_unannotated_results_are_text() -> None:
    assert convert(None).content == []
    assert convert("a").content == [{"type": "text", "text": "a"}]
    assert convert([1, "a"]).content == [{"type": "text", "text": '[1,"a"]'}]
    assert convert(Point(ex=1)).content[0]["text"] == '{"ex":1,"note":null}'
    assert convert(Size(1)).content[0]["text"] == '{"width":1,"names":[]}'
    assert convert({"d": Decimal("1.5"), "p": Path("/a")}).content[0]["text"] == '{"d":"1.5","p":"/a"}'


def test_bytes_become_an_embedded_blob() -> None:
    (block,) = convert(b"\x00\xff").content
    assert block["type"] == "resource"
    resource = block["resource"]
    assert isinstance(resource, dict)
    assert base64.b64decode(resource["blob"]) == b"\x00\xff"
    assert resource["mimeType"] == "application/octet-stream"


def test_a_missing_image_file_is_a_tool_error_without_its_path(tmp_path: Path) -> None:
    assert "file cannot be read" in failure(Image(path=tmp_path / "s3cr3t.png"))


def test_structured_output_can_be_declined_and_demanded() -> None:
    assert tool(int, structured_output=False).output_schema is None
    assert tool(int, structured_output=True).output_schema == {"type": "integer"}
    for returns in (NOTHING, Any, Image, Opaque):
        with pytest.raises(ConfigurationError, match=r"'maker'.*structured_output"):
            tool(returns, structured_output=True)


def test_an_annotation_that_no_schema_can_express_is_said_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    assert tool(Opaque).output_schema is None
    assert "'maker'" in caplog.text
    assert "structured_output=False" in caplog.text


class Everything(BaseModel):
    number: float
    text: str
    many: list[int]
    table: dict[str, bool]
    maybe: int | None = None


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(_JSON, st.sampled_from([NOTHING, Any, dict, list, str, float, int | str | None, Everything, list[Everything]]))
def test_any_value_becomes_an_agreeing_result_or_a_tool_error(value: object, returns: Any) -> None:
    text = ""
    try:
        convert(value, returns)
    except ToolError as error:
        text = str(error)
    assert len(text) < 600


@given(st.builds(Everything), st.sampled_from([Everything, list[Everything], Everything | None]))
def test_any_model_becomes_an_agreeing_result_or_a_tool_error(model: Everything, returns: Any) -> None:
    value = [model] if returns == list[Everything] else model
    if math.isfinite(model.number):
        convert(value, returns)
    else:
        assert "JSON cannot carry" in failure(value, returns)
