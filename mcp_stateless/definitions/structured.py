"""Structured results for revisions whose `outputSchema` and `structuredContent` must be objects.

Pure: the newest revision takes any schema and any value, so tools keep both unwrapped, and the two functions here wrap
them in the same way where an object is asked for.
"""

from collections.abc import Mapping
from typing import Final

WRAPPER: Final = "result"
"""The property that holds a value which is no object."""


def object_output_schema(schema: Mapping[str, object]) -> dict[str, object]:
    """`schema` itself if its root says it is an object, else an object with the one required property `result`."""
    if _is_object(schema):
        return dict(schema)
    inner = {key: value for key, value in schema.items() if key not in ("$defs", "$schema")}
    wrapped: dict[str, object] = {"type": "object", "properties": {WRAPPER: inner}, "required": [WRAPPER]}
    # References are paths from the root, so definitions have to stay there.
    return {**wrapped, **{key: schema[key] for key in ("$defs", "$schema") if key in schema}}


def object_structured(schema: Mapping[str, object] | None, value: object) -> dict[str, object]:
    """`value` as `object_output_schema(schema)` describes it; without a schema, by what the value is."""
    plain = isinstance(value, dict) if schema is None else _is_object(schema)
    return value if plain and isinstance(value, dict) else {WRAPPER: value}


def _is_object(schema: Mapping[str, object]) -> bool:
    return schema.get("type") == "object"
