"""The parameters of an author's function, with resolved annotations and the `Context` parameter set apart.

Owns what a definition may be made of: a function whose every parameter can be passed by name. Everything else is
refused here, at registration, with the name of the function and the fix.
"""

import functools
import inspect
import re
import sys
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

from mcp_stateless.context import Context
from mcp_stateless.errors import ConfigurationError

if sys.version_info >= (3, 14):
    import annotationlib

EMPTY: Any = inspect.Parameter.empty


ASKING: Final = frozenset({"elicit", "elicit_url", "sample", "list_roots"})
"""Context methods that ask the client."""

DETACHING: Final = frozenset({"detach"})
"""Context methods by which a call leaves its request."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """`named` holds every parameter but the context; annotations are types, never text."""

    label: str
    named: tuple[inspect.Parameter, ...]
    extra: inspect.Parameter | None
    """The `**kwargs` parameter, if there is one."""
    context_name: str | None
    context_type: type[Context[Any]]
    """The class to make the context with; `Context` itself where none is asked for."""
    returns: Any
    """The return annotation, `EMPTY` if there is none."""


def function_name(fn: Callable[..., Any], name: str | None, kind: str) -> str:
    """The name given, else the function's own."""
    found = getattr(fn, "__name__", "") if name is None else name
    if not isinstance(found, str) or not found.strip() or found == "<lambda>":
        raise ConfigurationError(f"A {kind} needs a name: {_described(fn)} has none of its own, so give name=...")
    return found


def names_one_of(methods: frozenset[str], fn: Callable[..., Any]) -> bool:
    """Whether the function's own code names such a method. What its helpers do is not seen."""
    code = getattr(getattr(fn, "__func__", fn), "__code__", None)
    return code is not None and not methods.isdisjoint(code.co_names)


def is_async(fn: Callable[..., Any]) -> bool:
    return any(map(inspect.iscoroutinefunction, (fn, getattr(fn, "__call__", None))))  # noqa: B004  # an object's method


def read_parameters(fn: Callable[..., Any], label: str) -> Parameters:
    """What `fn` takes and returns. `label` names it in errors."""
    function = _plain_function(fn, label)
    hints = _hints(function, label)
    parameters = [
        _checked(parameter.replace(annotation=hints.get(parameter.name, EMPTY)), label)
        for parameter in _signature(fn).parameters.values()
    ]
    contexts = [(item, cls) for item in parameters if (cls := _context_class(item.annotation)) is not None]
    if len(contexts) > 1:
        raise ConfigurationError(
            f"{label} has two Context parameters, {contexts[0][0].name!r} and {contexts[1][0].name!r}; keep one"
        )
    context, context_type = contexts[0] if contexts else (None, Context)
    data = [item for item in parameters if item is not context]
    if data and data[0].name in ("self", "cls") and data[0].annotation is EMPTY:
        raise ConfigurationError(
            f"{label} takes {data[0].name!r}: it is a method without its object. Register the method of an instance, "
            f"server.tool()(instance.method), or annotate the parameter if it is data"
        )
    return Parameters(
        label=label,
        named=tuple(item for item in data if item.kind is not inspect.Parameter.VAR_KEYWORD),
        extra=next((item for item in data if item.kind is inspect.Parameter.VAR_KEYWORD), None),
        context_name=None if context is None else context.name,
        context_type=context_type,
        returns=hints.get("return", EMPTY),
    )


def _described(fn: object) -> str:
    return str(getattr(fn, "__qualname__", None) or f"a {type(fn).__name__}")


def _plain_function(fn: Callable[..., Any], label: str) -> Callable[..., Any]:
    """The function that carries the annotations of `fn`."""
    if not callable(fn):
        raise ConfigurationError(f"{label} is {_described(fn)}, which cannot be called; register a function")
    if isinstance(fn, functools.partial):
        raise ConfigurationError(
            f"{label} is a functools.partial, whose bound values would be shown as defaults; "
            "write a def that calls the function with them"
        )
    if inspect.isclass(fn):
        raise ConfigurationError(f"{label} is the class {fn.__name__}; register a function that makes one")
    function = fn if inspect.isroutine(fn) else type(fn).__call__
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ConfigurationError(
            f"{label} is a generator function, and a result is one value; return a list, "
            "and report what happens meanwhile with Context.report_progress"
        )
    return function


def _signature(fn: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        return inspect.signature(fn, annotation_format=annotationlib.Format.FORWARDREF)
    else:
        return inspect.signature(fn)


def _hints(function: Callable[..., Any], label: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        where = _where_written(function, error.name or "")
        what = "its return annotation" if where == "return" else f"parameter {where!r}"
        raise ConfigurationError(
            f"{label}: {what} is annotated with {error.name!r}, which does not exist when the program runs. Import it "
            "outside `if TYPE_CHECKING:` and define it at module level"
        ) from error
    except (TypeError, SyntaxError) as error:
        raise ConfigurationError(f"{label} has an annotation that is no type: {error}") from error


def _written(function: Callable[..., Any]) -> dict[str, Any]:
    """Annotations as the author wrote them, unresolved."""
    if sys.version_info >= (3, 14):
        return annotationlib.get_annotations(function, format=annotationlib.Format.STRING)
    else:
        return dict(function.__annotations__)


def _where_written(function: Callable[..., Any], name: str) -> str:
    word = re.compile(rf"\b{re.escape(name)}\b")
    return next((where for where, text in _written(function).items() if word.search(str(text))), "?")


def _checked(parameter: inspect.Parameter, label: str) -> inspect.Parameter:
    if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
        raise ConfigurationError(
            f"{label} takes *{parameter.name}, and arguments have names; take a list: {parameter.name}: list[...]"
        )
    if parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
        raise ConfigurationError(
            f"{label} takes {parameter.name!r} by position only, and arguments have names; remove the '/'"
        )
    return parameter


def _context_class(annotation: Any) -> type[Context[Any]] | None:
    """The context class in `annotation`: bare, parametrised, subclassed, optional or annotated."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return _context_class(get_args(annotation)[0])
    if origin in (Union, types.UnionType):
        return next((found for item in get_args(annotation) if (found := _context_class(item)) is not None), None)
    cls = origin or annotation
    return cls if isinstance(cls, type) and issubclass(cls, Context) else None
