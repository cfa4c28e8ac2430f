"""An input schema that the author wrote, beside the function that answers for it.

Owns the check that the two fit. The schema itself is kept to the letter, unknown keywords and key order included.
"""

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any

from mcp_stateless.definitions.parameters import EMPTY, Parameters
from mcp_stateless.errors import ConfigurationError


def raw_schema(schema: Mapping[str, Any], parameters: Parameters, names: Mapping[str, str]) -> dict[str, Any]:
    """A copy of `schema`. `names` are the JSON names of the function's parameters.

    Every property needs a parameter and the reverse; a function with `**arguments` takes the rest as it comes, and one
    without parameters ignores them all.
    """
    label, properties = parameters.label, schema.get("properties", {})
    if schema.get("type") != "object" or not isinstance(properties, Mapping):
        raise ConfigurationError(f'{label}: input_schema= needs "type": "object" at its root, and properties as a dict')
    _check_json(schema, label)
    strange = [name for name in names if name not in properties]
    if strange:
        raise ConfigurationError(f"{label}: input_schema= has no property for the parameters {', '.join(strange)}")
    if parameters.extra is not None:
        _check_extra(parameters, properties)
    elif names and len(properties) > len(names):
        unmet = ", ".join(name for name in properties if name not in names)
        raise ConfigurationError(
            f"{label}: input_schema= has properties without a parameter: {unmet}; add them, or **arguments"
        )
    return copy.deepcopy(dict(schema))


def _check_json(schema: Mapping[str, Any], label: str) -> None:
    try:
        json.dumps(schema, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise ConfigurationError(f"{label}: input_schema= is not JSON: {error}") from error
    for target in _references(schema):
        if not target.startswith("#"):
            raise ConfigurationError(
                f"{label}: input_schema= refers to {target!r}; clients fetch no schemas, use a local #/$defs entry"
            )


def _check_extra(parameters: Parameters, properties: Mapping[str, Any]) -> None:
    extra = parameters.extra
    assert extra is not None  # the caller saw to it
    if extra.annotation is not EMPTY and extra.annotation is not Any and extra.annotation is not object:
        raise ConfigurationError(
            f"{parameters.label}: **{extra.name} passes arguments on as they come; annotate it with object"
        )
    if parameters.context_name in properties:
        raise ConfigurationError(
            f"{parameters.label}: the Context parameter {parameters.context_name!r} is also a property; rename it"
        )


def _references(node: Any) -> Iterator[str]:
    if isinstance(node, list | tuple):
        for item in node:
            yield from _references(item)
    elif isinstance(node, Mapping):
        for key, value in node.items():
            if key in ("$ref", "$dynamicRef") and isinstance(value, str):
                yield value
            else:
                yield from _references(value)
