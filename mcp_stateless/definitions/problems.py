"""What pydantic found wrong, as a short text for a model: which field, and why.

Owns the wording. It names no classes and no addresses, and repeats no input beyond the first characters of a name.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pydantic import PydanticUserError
from pydantic_core import ErrorDetails, SchemaError

LONGEST_TEXT: Final = 480
"""Characters of a whole text; a model needs the first problems, not all of them."""
_LONGEST_NAME: Final = 40
_LONGEST_REASON: Final = 160

MISSING_TYPES: Final = frozenset({"missing", "missing_argument", "missing_keyword_only_argument"})
UNUSABLE_TYPE: Final = (PydanticUserError, SchemaError, NameError, TypeError, ValueError)
"""What pydantic raises for a type it cannot read or describe; one of its own hooks may raise the last two."""

_OBJECT: Final = "should be an object"
_WORDING: Final[Mapping[str, str]] = {
    **dict.fromkeys(MISSING_TYPES, "required"),
    "unexpected_keyword_argument": "unknown argument",
    "extra_forbidden": "unknown field",
    "model_type": _OBJECT,
    "model_attributes_type": _OBJECT,
    "dataclass_type": _OBJECT,
    "dataclass_exact_type": _OBJECT,
    "dict_type": _OBJECT,
    "mapping_type": _OBJECT,
    "is_instance_of": "has the wrong type",
    "is_subclass_of": "has the wrong type",
    "string_unicode": "should be valid Unicode",
}
"""Reasons by error type, where pydantic's own words would name a class or speak of Python."""


def describe(problems: Iterable[tuple[str, str]], lead: str) -> str:
    """`lead: field: reason; field: reason`, shortened; several reasons for one field are alternatives."""
    reasons: dict[str, list[str]] = {}
    for where, why in problems:
        known = reasons.setdefault(where, [])
        if why not in known:
            known.append(why)
    parts = [f"{where}: {' or '.join(why)}" if where else " or ".join(why) for where, why in reasons.items()]
    # Names may hold lone surrogates, which no answer can carry.
    text = f"{lead}: {'; '.join(parts)}".encode("utf-8", "replace").decode("utf-8")
    return text if len(text) <= LONGEST_TEXT else f"{text[: LONGEST_TEXT - 3]}..."


def located(errors: Sequence[ErrorDetails], root: object) -> list[tuple[str, str]]:
    """Each error as (field, reason)."""
    return [(field_path(error["loc"], root, missing=error["type"] in MISSING_TYPES), reason(error)) for error in errors]


def reason(error: ErrorDetails) -> str:
    context: Mapping[str, Any] = error.get("ctx", {})
    match error["type"]:
        case "value_error" | "assertion_error":
            text = str(context.get("error", "not valid"))
        case "union_tag_invalid":
            text = f"{context['discriminator']} should be one of {context['expected_tags']}"
        case known if known in _WORDING:
            text = _WORDING[known]
        case _:
            text = error["msg"].replace("Input should", "should")
    return shortened(text, _LONGEST_REASON)


def field_path(location: Sequence[int | str], root: object, *, missing: bool = False) -> str:
    """`location` as a path like `a.b[2]`, without the names that pydantic gives to branches of a union."""
    path, value = "", root
    for step in location:
        inside = _step(value, step)
        if inside is not None:
            path += _written(step)
            (value,) = inside
    if missing and location:
        path += _written(location[-1])
    return path.removeprefix(".")


def first_sentence(error: Exception) -> str:
    """What pydantic says about a type it cannot handle, without its advice on models and its links."""
    lines = str(error).split("\n")
    said = lines[-1].strip() if isinstance(error, SchemaError) else lines[0]
    return said.split(". ", 1)[0].rstrip(".")


def shortened(text: str, limit: int = _LONGEST_NAME) -> str:
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def _written(step: int | str) -> str:
    return f"[{step}]" if isinstance(step, int) else f".{shortened(step)}"


def _step(value: object, step: int | str) -> tuple[object] | None:
    if isinstance(value, Mapping):
        return (value[step],) if step in value else None
    if isinstance(step, int):
        return (value[step],) if isinstance(value, list | tuple) and step < len(value) else None
    # Fields of a model or dataclass; what a class computes is not a field, and asking could run its code.
    fields = getattr(value, "__dict__", {})
    return (fields[step],) if step in fields else None
