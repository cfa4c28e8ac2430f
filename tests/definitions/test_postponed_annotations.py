"""The same under `from __future__ import annotations`, where annotations are text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest

from mcp_stateless.context import Context
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal


class MyContext(Context[Any]):
    pass


def plain(a: int, ctx: Context[Any]) -> int: ...  # type: ignore[empty-body]
def quoted(a: int, ctx: "Context[Any]") -> int: ...  # type: ignore[empty-body]  # noqa: UP037
def optional(a: int, ctx: Optional[Context[Any]] = None) -> int: ...  # type: ignore[empty-body]  # noqa: UP045
def annotated(a: int, ctx: Annotated[Context[Any], "note"]) -> int: ...  # type: ignore[empty-body]
def subclass(a: int, ctx: MyContext) -> int: ...  # type: ignore[empty-body]
def hidden(a: int, price: Decimal) -> None: ...
def hidden_result(a: int) -> Decimal: ...  # type: ignore[empty-body]


# B85
@pytest.mark.parametrize("fn", [plain, quoted, optional, annotated, subclass])
def test_the_context_is_found_and_types_are_resolved(fn: Callable[..., Any]) -> None:
    tool = Tool.from_function(fn)
    assert tool.context_parameter == "ctx"
    assert tool.input_schema["properties"] == {"a": {"type": "integer"}}
    assert tool.output_schema == {"type": "integer"}


# B85
def test_a_type_that_exists_only_for_type_checkers_is_named_with_the_fix() -> None:
    with pytest.raises(ConfigurationError, match=r"'hidden'.*'price'.*'Decimal'.*TYPE_CHECKING"):
        Tool.from_function(hidden)


def test_a_return_type_that_exists_only_for_type_checkers_is_named_too() -> None:
    with pytest.raises(ConfigurationError, match=r"'hidden_result'.*return annotation.*'Decimal'"):
        Tool.from_function(hidden_result)


def test_an_annotation_that_is_no_expression_is_refused() -> None:
    def f(a: int) -> None: ...

    f.__annotations__["a"] = "int or ("  # never a type
    with pytest.raises(ConfigurationError, match="'f' has an annotation that is no type"):
        Tool.from_function(f)
