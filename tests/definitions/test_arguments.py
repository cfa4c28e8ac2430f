"""How the arguments of a call are read, and what a model is told when they do not fit."""

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import AfterValidator, BaseModel, Field

from mcp_stateless.definitions.signature import Signature
from mcp_stateless.errors import ArgumentError


def bind(fn: Callable[..., Any], **arguments: object) -> dict[str, object]:
    return Signature.of(fn, name="Tool 'f'").bind(arguments)


def refusal(fn: Callable[..., Any], arguments: dict[str, object]) -> str:
    with pytest.raises(ArgumentError) as caught:
        Signature.of(fn, name="Tool 'f'").bind(arguments)
    text = str(caught.value)
    assert len(text) < 500
    for noise in ("http", "pydantic", "Arguments(", "collected"):
        assert noise not in text
    return text


class Point(BaseModel):
    x: int
    y: int = 0


@dataclass
class Size:
    width: int


class Unit(Enum):
    metre = "m"
    foot = "ft"


def one(annotation: Any, default: Any = ...) -> Callable[..., Any]:
    if default is ...:

        def required(p: Any) -> None: ...

        required.__annotations__["p"] = annotation
        return required

    def optional(p: Any = default) -> None: ...

    optional.__annotations__["p"] = annotation
    return optional


# B83
@pytest.mark.parametrize("value", ["12345", "true", "null", '{"a":1}', "1e5", "[1]", '"quoted"', ""])
@pytest.mark.parametrize("annotation", [str, str | None, Annotated[str, Field(max_length=50)], str | list[str], Any])
def test_a_string_for_a_string_parameter_stays_that_string(annotation: Any, value: str) -> None:
    assert bind(one(annotation), p=value) == {"p": value}


# B83
def test_a_literal_of_strings_takes_the_string() -> None:
    assert bind(one(Literal["1", "2"]), p="1") == {"p": "1"}


# B84
@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (list[str], '["a@example.com"]', ["a@example.com"]),
        (dict[str, int], '{"a": 1}', {"a": 1}),
        (Point, '{"x": 1}', Point(x=1)),
        (Size, '{"width": 2}', Size(2)),
        (list[Point], '[{"x": 1}]', [Point(x=1)]),
        (int, "5", 5),
        (float, "2.5", 2.5),
        (bool, "true", True),
        (list[str] | None, "null", None),
        (str | list[str], '["a"]', '["a"]'),
    ],
)
def test_a_stringified_argument_is_read_where_the_type_takes_no_string(annotation: Any, text: str, value: Any) -> None:
    assert bind(one(annotation), p=text) == {"p": value}


@pytest.mark.parametrize("text", ["[NaN]", "[1", "[" * 100_000, "1" * 10_000])
def test_text_that_is_no_json_is_not_read_as_such(text: str) -> None:
    assert "p: should be a valid list" in refusal(one(list[float]), {"p": text})


def test_an_argument_that_fails_both_readings_is_reported_as_it_came() -> None:
    def f(a: list[int], b: Annotated[str, Field(min_length=10)], c: int) -> None: ...

    text = refusal(f, {"a": "[1]", "b": "123", "c": "x"})
    assert "b: String should have at least 10 characters" in text
    assert "c: should be a valid integer" in text
    assert "a:" not in text


# B88
def test_null_means_none_where_the_type_takes_it_and_else_the_default() -> None:
    assert bind(one(Optional[int], 30), p=None) == {"p": None}  # noqa: UP045
    assert bind(one(int, 30), p=None) == {"p": 30}
    assert "p: should be a valid integer" in refusal(one(int), {"p": None})


# B93
@pytest.mark.parametrize(("value", "expected"), [(5, 5), (5.0, 5), ("5", 5)])
def test_an_integer_may_be_written_as_a_whole_float_or_text(value: object, expected: int) -> None:
    bound = bind(one(int), p=value)["p"]
    assert bound == expected
    assert type(bound) is int


@pytest.mark.parametrize("value", [True, "abc", 5.5, "true"])
@pytest.mark.parametrize("annotation", [int, Annotated[int, Field(ge=0)], int | None])
def test_a_boolean_a_fraction_or_a_word_is_no_integer(annotation: Any, value: object) -> None:
    assert "p:" in refusal(one(annotation), {"p": value})


@pytest.mark.parametrize(
    ("annotation", "value"), [(float, True), (list[int], [1, True]), (dict[str, float], {"a": False})]
)
def test_a_boolean_is_no_number_inside_collections_either(annotation: Any, value: object) -> None:
    assert "not a boolean" in refusal(one(annotation), {"p": value})


def test_a_boolean_stays_one_where_the_type_takes_it() -> None:
    assert bind(one(int | bool), p=True)["p"] is True
    assert bind(one(dict[str, Any]), p={"a": True}) == {"p": {"a": True}}


# B94
def test_a_field_of_a_nested_model_is_named_by_its_path() -> None:
    class Address(BaseModel):
        zip: Annotated[str, Field(pattern=r"^\d+$")]

    class Person(BaseModel):
        addresses: list[Address]
        age: int = Field(0, alias="Age", ge=0)

    text = refusal(one(Person), {"p": {"addresses": [{"zip": "1"}, {"zip": "x"}], "Age": -1}})
    assert "p.addresses[1].zip: String should match pattern" in text
    assert "p.Age: should be greater than or equal to 0" in text
    assert "Person" not in text
    assert "Address" not in text


# B94
def test_a_validators_own_words_reach_the_model() -> None:
    def even(value: int) -> int:
        if value % 2:
            raise ValueError("must be even")
        return value

    assert refusal(one(Annotated[int, AfterValidator(even)]), {"p": 3}) == "Invalid arguments: p: must be even"


# B105
def test_missing_extra_wrong_and_out_of_range_arguments_are_each_named() -> None:
    def f(needed: str, count: Annotated[int, Field(le=10)], unit: Unit = Unit.metre) -> None: ...

    assert refusal(f, {"count": 1}) == "Invalid arguments: needed: required"
    assert refusal(f, {"needed": "a", "count": 11}) == "Invalid arguments: count: should be less than or equal to 10"
    assert refusal(f, {"needed": 1, "count": 1}) == "Invalid arguments: needed: should be a valid string"
    assert refusal(f, {"needed": "a", "count": 1, "unit": "km"}) == "Invalid arguments: unit: should be 'm' or 'ft'"
    assert refusal(f, {"needed": "a", "count": 1, "colour": 1}) == (
        "Invalid arguments: colour: unknown argument (known: needed, count, unit)"
    )


def test_a_union_tells_the_alternatives_once() -> None:
    text = refusal(one(int | list[str]), {"p": {"a": 1}})
    assert text == "Invalid arguments: p: should be a valid integer or should be a valid list"


def test_an_argument_that_a_host_adds_is_dropped_unless_the_function_has_it() -> None:
    def f(a: int) -> None: ...
    def g(wait_for_previous: bool) -> None: ...

    assert bind(f, a=1, wait_for_previous=True) == {"a": 1}
    assert bind(g, wait_for_previous=True) == {"wait_for_previous": True}


@pytest.mark.parametrize("value", ["\ud800", ["\ud800"], {"\ud800": 1}, {"x": 1, "\udfff": 1}])
def test_lone_surrogates_are_taken_or_refused_in_encodable_words(value: object) -> None:
    class Closed(BaseModel, extra="forbid"):
        x: int

    for annotation in (Annotated[str, Field(pattern="a")], Closed, list[int], dict[str, int], date, int):
        for arguments in ({"p": value}, {"\ud800": value}):
            try:
                Signature.of(one(annotation), name="Tool 'f'").bind(arguments)
            except ArgumentError as error:
                str(error).encode()


def test_long_input_is_not_repeated() -> None:
    class Cat(BaseModel):
        kind: Literal["cat"]

    class Dog(BaseModel):
        kind: Literal["dog"]

    def f(pet: Annotated[Cat | Dog, Field(discriminator="kind")], numbers: list[int]) -> None: ...

    secret = "s3cr3t" * 1000
    text = refusal(f, {"pet": {"kind": secret}, "numbers": [secret] * 100, secret: 1})
    assert text.count("s3cr3t") < 8
    assert "kind" in text


@given(st.dictionaries(st.text(), st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner), max_leaves=6,
), max_size=4))  # fmt: skip
def test_any_json_object_is_bound_or_refused_shortly(arguments: dict[str, object]) -> None:
    def f(a: int, b: Point, c: list[str] | None = None, d: Literal["x", 1] = "x") -> None: ...

    signature = Signature.of(f, name="Tool 'f'")
    for given_arguments in (arguments, {"a": 1, "b": {"x": 1}, **arguments}):
        outcome: object
        try:
            outcome = set(signature.bind(given_arguments))
        except ArgumentError as error:
            outcome = len(str(error)) < 500
        assert outcome in ({"a", "b", "c", "d"}, True)


class Sample(BaseModel):
    number: float
    names: list[str]


@given(
    st.integers(-(10**9), 10**9),
    st.text(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.lists(st.text()),
    st.sampled_from(Unit),
)
def test_valid_values_survive_the_way_through_json_in_both_spellings(
    count: int, name: str, number: float, names: list[str], unit: Unit
) -> None:
    def f(count: int, name: str, sample: Sample, unit: Unit = Unit.metre) -> None: ...

    signature = Signature.of(f, name="Tool 'f'")
    sample = Sample(number=number, names=names)
    arguments = {"count": count, "name": name, "sample": sample.model_dump(mode="json"), "unit": unit.value}
    decoded = json.loads(json.dumps(arguments))
    Draft202012Validator(dict(signature.input_schema)).validate(decoded)
    expected = {"count": count, "name": name, "sample": sample, "unit": unit}
    assert signature.bind(decoded) == expected
    stringified = {**decoded, "count": json.dumps(decoded["count"]), "sample": json.dumps(decoded["sample"])}
    assert signature.bind(stringified) == expected
    assert math.isfinite(number)
