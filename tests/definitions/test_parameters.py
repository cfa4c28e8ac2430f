"""Which functions can be a definition, and where their context is."""

import functools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Annotated, Any, Optional, TypeVar

import pytest

from mcp_stateless.context import Context
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ConfigurationError

T = TypeVar("T")


class MyContext(Context[T]):
    pass


def bare(ctx: Context[Any], a: int) -> None: ...
def last(a: int, ctx: Context[Any]) -> None: ...
def keyword(a: int, *, ctx: Context[int]) -> None: ...
def raw(a: int, ctx: Context) -> None: ...
def text(a: int, ctx: "Context[Any]") -> None: ...
def optional(a: int, ctx: Optional[Context[Any]] = None) -> None: ...  # noqa: UP045
def piped(a: int, ctx: Context[Any] | None = None) -> None: ...
def annotated(a: int, ctx: Annotated[Context[Any], "note"]) -> None: ...
def subclass(a: int, ctx: MyContext[int]) -> None: ...


# B85
@pytest.mark.parametrize("fn", [bare, last, keyword, raw, text, optional, piped, annotated, subclass])
def test_the_context_is_found_by_its_type_and_is_no_argument(fn: Callable[..., Any]) -> None:
    tool = Tool.from_function(fn)
    assert tool.context_parameter == "ctx"
    assert list(tool.input_schema["properties"]) == ["a"]
    assert tool.signature.bind({"a": 1}) == {"a": 1}
    assert tool.context_type is (MyContext if fn is subclass else Context)


def test_a_function_without_a_context_has_none() -> None:
    def f(ctx: int) -> None: ...

    tool = Tool.from_function(f)
    assert tool.context_parameter is None
    assert list(tool.input_schema["properties"]) == ["ctx"]


def test_two_contexts_are_refused() -> None:
    def f(a: Context[Any], b: Context[Any]) -> None: ...

    with pytest.raises(ConfigurationError, match="'a' and 'b'"):
        Tool.from_function(f)


def starred(*values: int) -> None: ...
def double_starred(**values: int) -> None: ...
def positional(a: int, /, b: int) -> None: ...


def generator() -> Iterator[int]:
    yield 1


async def async_generator() -> AsyncIterator[int]:
    yield 1


class Toolbox:
    def __init__(self, base: int) -> None:
        self.base = base

    def add(self, a: int) -> int:
        return self.base + a

    async def add_later(self, a: int) -> int:
        return self.base + a

    def __call__(self, a: int) -> int:
        return self.base + a


class AsyncCallable:
    async def __call__(self, a: int) -> int:
        return a


# B91
@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (starred, r"\*values.*take a list"),
        (double_starred, r"\*\*values.*input_schema="),
        (positional, r"'a' by position only.*remove the '/'"),
        (generator, "generator.*return a list"),
        (async_generator, "generator.*return a list"),
        (Toolbox.add, r"'self'.*instance\.method"),
        (Toolbox, "class Toolbox"),
        (functools.partial(bare, a=1), r"functools\.partial.*write a def"),
        ("text", "cannot be called"),
    ],
)
def test_what_cannot_be_called_by_name_is_refused_with_the_fix(fn: Any, message: str) -> None:
    with pytest.raises(ConfigurationError, match=message) as caught:
        Tool.from_function(fn, name="the_tool")
    assert "the_tool" in str(caught.value)


def test_bound_methods_and_callable_objects_are_tools() -> None:
    box = Toolbox(10)
    method, later = Tool.from_function(box.add), Tool.from_function(box.add_later)
    called = Tool.from_function(box, name="called")
    for tool in (method, later, called):
        assert list(tool.input_schema["properties"]) == ["a"]
    assert (method.name, method.is_async, later.is_async, called.is_async) == ("add", False, True, False)
    assert called.fn(**called.signature.bind({"a": 1})) == 11
    assert Tool.from_function(AsyncCallable(), name="later").is_async


# B95
@pytest.mark.parametrize("name", ["", "  ", None])
def test_a_tool_needs_a_name(name: str | None) -> None:
    with pytest.raises(ConfigurationError, match=r"needs a name.*name="):
        Tool.from_function(lambda a: a, name=name)


def test_a_decorated_function_keeps_its_signature() -> None:
    def logged(fn: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(fn)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            return fn(*args, **kwargs)

        return wrapper

    @logged
    def f(a: int, ctx: Context[Any]) -> int:
        return a

    tool = Tool.from_function(f)
    assert list(tool.input_schema["properties"]) == ["a"]
    assert tool.context_parameter == "ctx"
