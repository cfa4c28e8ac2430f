"""The check of outgoing data refuses what a full JSON Schema validator refuses."""

from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mcp_stateless.definitions.conformity import conformity_check
from mcp_stateless.definitions.json_schema import result_schema


class Closed(BaseModel):
    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1, max_length=3)]
    level: Annotated[int, Field(ge=0, lt=5)] = 0


class Tree(BaseModel):
    value: float | None
    kind: Literal["leaf", "node"]
    children: "list[Tree]" = []


TYPES: list[Any] = [
    str,
    int,
    float,
    bool,
    None | Annotated[str, Field(pattern="^a+$")],
    list[Annotated[int, Field(multiple_of=3)]],
    Annotated[list[bool], Field(min_length=1, max_length=2)],
    dict[str, Annotated[float, Field(gt=0)]],
    Literal["a", 4],  # not 1, which older pydantic takes for True
    Closed,
    Tree,
    list[Closed | Tree],
    Any,
]

_SCALAR = (
    st.none()
    | st.booleans()
    | st.integers(-3, 9)
    # No whole floats: JSON Schema counts 1.0 as an integer, which pydantic never writes for one.
    | st.sampled_from([-0.5, 0.5, 2.5])
    | st.sampled_from(["", "a", "aa", "leaf", "node"])
)
_KEYS = st.sampled_from(["name", "level", "value", "kind", "children", "other"])
DATA = st.recursive(
    _SCALAR, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_KEYS, inner, max_size=4), max_leaves=10
)


@given(st.sampled_from(TYPES), DATA)
def test_data_passes_the_check_exactly_when_it_fits_the_schema(returns: Any, data: object) -> None:
    schema = result_schema(TypeAdapter(returns))
    assert _passes(schema, data) == Draft202012Validator(schema).is_valid(data)


def test_the_items_of_a_tuple_are_left_to_its_type() -> None:
    schema = result_schema(TypeAdapter(tuple[int, str]))
    assert _passes(schema, ["not looked at", 1])
    assert not _passes(schema, [1])
    assert not _passes(schema, "ab")


def _passes(schema: dict[str, Any], data: object) -> bool:
    try:
        conformity_check(schema).validate_python(data)
    except ValidationError:
        return False
    return True


@pytest.mark.parametrize("schema", [{}, {"type": "object"}, {"items": True}, {"type": "other"}, {"$ref": "#/nowhere"}])
def test_an_open_schema_takes_what_it_says(schema: dict[str, Any]) -> None:
    assert _passes(schema, {"any": ["thing"]})


def test_a_list_of_types_takes_each() -> None:
    schema = {"type": ["string", "null"], "maxLength": 1}
    assert _passes(schema, None)
    assert _passes(schema, "a")
    assert not _passes(schema, "ab")
    assert not _passes(schema, 1)
