"""JSON of values that authors return: data, and its text.

Owns what JSON cannot carry: NaN and infinities, lone surrogates, objects without a JSON form, circles. Each is a
`ToolError` that names the place and the type, never the value.
"""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from pydantic_core import PydanticSerializationError, to_jsonable_python

from mcp_stateless.errors import ToolError


def jsonable(value: object, label: str) -> object:
    """`value` as JSON data, whatever its type says.

    Raises:
        ToolError: some object in it has no JSON form.
    """
    try:
        return to_jsonable_python(value, by_alias=True, fallback=refusal(label))
    except (PydanticSerializationError, ValueError, RecursionError) as error:
        raise ToolError(f"{label} returned {unserialisable(value, error)}") from error


def refusal(label: str) -> Callable[[Any], NoReturn]:
    def refuse(value: Any) -> NoReturn:
        raise ToolError(f"{label} returned an object of type {type_name(value)}, which has no JSON form")

    return refuse


def encoded(data: object, label: str, *, source: object = None) -> str:
    """JSON text with real characters. `source` is what `data` was made of, if it was made of something.

    Raises:
        ToolError: a number or a text in it that JSON cannot carry.
    """
    try:
        text = json.dumps(data, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        text.encode()
    except (ValueError, TypeError, RecursionError) as error:
        what = next(_faults(data, ""), "a value")
        raise ToolError(f"{label} returned {what}, which JSON cannot carry") from error
    # pydantic writes NaN as null where a type says Any; a reader could not tell it from a missing value.
    if "null" in text:
        for lost in _swallowed(source, data, ""):
            raise ToolError(f"{label} returned {lost}, which JSON cannot carry")
    return text


def type_name(value: object) -> str:
    return type(value).__name__


def unserialisable(value: object, error: Exception) -> str:
    if isinstance(error, UnicodeEncodeError):
        return "text with a lone surrogate, which JSON cannot carry"
    text = str(error)
    if "ircular reference" in text or isinstance(error, RecursionError):
        return f"a {type_name(value)} that contains itself, which JSON cannot carry"
    return f"a {type_name(value)} that could not be turned into JSON; return plain data or a model"


def _faults(data: object, path: str) -> Iterator[str]:
    """What JSON cannot carry, and where."""
    if isinstance(data, float) and not math.isfinite(data):
        yield _number(data, path)
    elif isinstance(data, str):
        if any("\ud800" <= character <= "\udfff" for character in data):
            yield f"text with a lone surrogate{_at(path)}"
    elif isinstance(data, Mapping):
        for key, value in data.items():
            yield from _faults(str(key), path)
            yield from _faults(value, f"{path}.{key}")
    elif isinstance(data, Sequence):
        for index, value in enumerate(data):
            yield from _faults(value, f"{path}[{index}]")


def _swallowed(source: object, data: object, path: str) -> Iterator[str]:
    """Numbers of `source` that are null in `data`."""
    if data is None:
        if isinstance(source, float) and not math.isfinite(source):
            yield _number(source, path)
    elif isinstance(data, dict):
        fields = source if isinstance(source, Mapping) else getattr(source, "__dict__", {})
        for key, value in fields.items():
            if key in data:
                yield from _swallowed(value, data[key], f"{path}.{key}")
    elif isinstance(data, list) and isinstance(source, list | tuple):
        for index, (value, written) in enumerate(zip(source, data, strict=False)):
            yield from _swallowed(value, written, f"{path}[{index}]")


def _number(value: float, path: str) -> str:
    return f"{'NaN' if math.isnan(value) else 'Infinity' if value > 0 else '-Infinity'}{_at(path)}"


def _at(path: str) -> str:
    return f" at {path.removeprefix('.')}" if path else ""
