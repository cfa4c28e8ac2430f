"""A model as the form of an elicitation: flat properties that a host can show as fields.

2025-11-25 and 2026-07-28, elicitation: text, numbers, booleans, single and multiple choice; nothing nested.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

from pydantic import BaseModel, TypeAdapter

from mcp_stateless.definitions.json_schema import argument_schema, inline_references
from mcp_stateless.errors import ConfigurationError

_SCALARS: Final = frozenset({"string", "integer", "number", "boolean"})


@cache
def form_schema(model: type[BaseModel]) -> Mapping[str, Any]:
    """The `requestedSchema` of a form for `model`.

    Raises:
        ConfigurationError: a field is no form field; the message names it.
    """
    schema = inline_references(argument_schema(TypeAdapter(model)))
    properties: Mapping[str, Mapping[str, Any]] = schema.get("properties", {})
    for name, field in properties.items():
        if not _is_field(field):
            raise ConfigurationError(
                f"{model.__name__}.{name} cannot be a field of a form: use str, int, float, bool, an Enum, a Literal "
                "of strings, or a list of one of the last two"
            )
    form: dict[str, Any] = {"type": "object", "properties": {name: _plain(field) for name, field in properties.items()}}
    return {**form, "required": schema["required"]} if schema.get("required") else form


def _is_field(field: Mapping[str, Any]) -> bool:
    if field.get("type") == "array":
        items = field.get("items", {})
        return (items.get("type") == "string" and ("enum" in items or "const" in items)) or "anyOf" in items
    return field.get("type") in _SCALARS


def _plain(field: Mapping[str, Any]) -> dict[str, Any]:
    """`Literal["a"]` as an enumeration of one: forms have no `const` of their own."""
    if "const" not in field:
        return dict(field)
    return {**{key: value for key, value in field.items() if key != "const"}, "enum": [field["const"]]}
