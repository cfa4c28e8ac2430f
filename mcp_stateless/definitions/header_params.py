"""`x-mcp-header` annotations of an input schema: which arguments a client repeats in `Mcp-Param-*` headers.

Owns the rules such an annotation has to keep. Clients drop a tool that breaks one without a word, so they are checked
at registration; that a request's headers agree with its arguments is checked with each call.
"""

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final

from mcp_stateless.errors import ConfigurationError, HeaderMismatch
from mcp_stateless.protocol.inbound import decode_header

KEYWORD: Final = "x-mcp-header"
_TOKEN: Final = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
"""RFC 9110, section 5.6.2."""
_NUMBER: Final = re.compile(r"-?[0-9]{1,400}(?:\.[0-9]{1,400})?(?:[eE][+-]?[0-9]{1,3})?")
_TYPES: Final = ("string", "integer", "boolean")
_DATA: Final = frozenset({"default", "const", "enum", "examples"})
"""Keywords whose value is data, not a schema."""


def header_parameters(schema: Mapping[str, Any], label: str) -> dict[str, tuple[str, ...]]:
    """Header name in lower case, without `Mcp-Param-` -> path of the property that it repeats.

    Raises:
        ConfigurationError: an annotation that clients would refuse.
    """
    found: dict[str, tuple[str, ...]] = {}
    for header, path, node in _annotations(schema, ()):
        _check(header, path, node, label)
        if header.lower() in found:
            raise ConfigurationError(f"{label}: the header {header!r} is named twice; header names ignore case")
        assert path is not None  # _check saw to it
        found[header.lower()] = path
    return found


def _annotations(node: Any, path: tuple[str, ...] | None) -> Iterator[tuple[Any, tuple[str, ...] | None, Any]]:
    """Every annotation with the path to it; None where the path leaves `properties`."""
    if isinstance(node, list):
        for item in node:
            yield from _annotations(item, None)
    elif isinstance(node, Mapping):
        if KEYWORD in node:
            yield node[KEYWORD], path or None, node
        for keyword, value in node.items():
            if keyword == "properties" and isinstance(value, Mapping):
                for name, schema in value.items():
                    yield from _annotations(schema, None if path is None else (*path, name))
            elif keyword not in _DATA:
                yield from _annotations(value, None)


def _check(header: Any, path: tuple[str, ...] | None, node: Mapping[str, Any], label: str) -> None:
    if not isinstance(header, str) or not _TOKEN.fullmatch(header):
        raise ConfigurationError(f"{label}: {KEYWORD} {header!r} is no header name; use letters, digits and '-'")
    if path is None:
        raise ConfigurationError(
            f"{label}: {KEYWORD} {header!r} has to be on a property that is reached through properties alone"
        )
    if node.get("type") not in _TYPES:
        raise ConfigurationError(
            f"{label}: {KEYWORD} {header!r} is on {'.'.join(path)!r}, whose type has to be one of {', '.join(_TYPES)}"
        )


def check_parameter_headers(
    header_params: Mapping[str, tuple[str, ...]], arguments: Mapping[str, object], headers: Mapping[str, str]
) -> None:
    """`Mcp-Param-*` headers say what the arguments say; both are there or neither.

    Raises:
        HeaderMismatch: they do not.
    """
    for name, path in header_params.items():
        value: object = arguments
        for key in path:
            value = value.get(key) if isinstance(value, Mapping) else None
        header = headers.get(f"mcp-param-{name}")
        if (header is None) != (value is None) or (header is not None and not _mirrors(decode_header(header), value)):
            raise HeaderMismatch(f"Header mismatch: Mcp-Param-{name} must equal the argument {'.'.join(path)}")


def _mirrors(header: str, value: object) -> bool:
    if isinstance(value, bool):
        return header == ("true" if value else "false")
    if isinstance(value, int | float):
        # Exact at any size, which a float is not; Python's own number syntax takes more than JSON's.
        return _NUMBER.fullmatch(header) is not None and Decimal(header) == value
    return header == value
