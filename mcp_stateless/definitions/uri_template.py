"""URI templates (RFC 6570), read backwards: which values of the variables give this URI.

Supported where that has one answer: `{a}` one path segment, `{/a}` the same with its slash, `{+a}` and `{/a*}` the rest
of a path (one of these in a template), `{?a,b}` a query at the end, in any order and each optional. Everything else is
refused when the template is made.

Values come from a client and often end in a file path, so a URI whose values could leave a directory does not match:
no `..` segments, no slash inside `{a}` even when it is percent-encoded, no absolute path, no backslash, no NUL.
"""

import re
from dataclasses import dataclass
from typing import Final, NoReturn
from urllib.parse import unquote

from mcp_stateless.errors import ConfigurationError

_EXPRESSION: Final = re.compile(r"\{([^{}]*)\}")
_BODY: Final = re.compile(r"([+#./;?&=,!@|]?)([A-Za-z_][A-Za-z0-9_]*)(\*|:\d+)?")
_QUERY_NAMES: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(,[A-Za-z_][A-Za-z0-9_]*)*")
_SEGMENT: Final = r"[^/?#]+"
_REST: Final = r"[^?#]+"
_ESCAPE: Final = re.compile(r"%(?![0-9A-Fa-f]{2})")
_DRIVE: Final = re.compile(r"[A-Za-z]:")


@dataclass(frozen=True, slots=True)
class UriTemplate:
    """Made by `parse`. `variables` are in the order of the template, those of the query last."""

    text: str
    variables: tuple[str, ...]
    query: frozenset[str]
    """Variables that a URI may leave out."""
    _rests: frozenset[str]
    _pattern: re.Pattern[str]

    @classmethod
    def parse(cls, text: str) -> "UriTemplate":
        """Raises ConfigurationError, with the position, for what cannot be matched."""
        reader = _Reader(text)
        pattern = reader.read()
        return cls(text, tuple(reader.variables), frozenset(reader.query), frozenset(reader.rests), re.compile(pattern))

    def match(self, uri: str) -> dict[str, str] | None:
        """The decoded values, without those a query leaves out; None if the URI is not of this template."""
        path, mark, query = uri.partition("?") if self.query else (uri, "", "")
        found = self._pattern.fullmatch(path)
        if found is None:
            return None
        values: dict[str, str] = {}
        for name, raw in found.groupdict().items():
            value = _decoded(raw)
            if value is None or not (_is_safe_path(value) if name in self._rests else _is_safe_segment(value)):
                return None
            values[name] = value
        asked = self._query_values(query) if mark else {}
        return None if asked is None else {**values, **asked}

    def _query_values(self, query: str) -> dict[str, str] | None:
        values: dict[str, str] = {}
        for pair in query.split("&"):
            name, _, raw = pair.partition("=")
            if name not in self.query or name in values:
                continue
            value = _decoded(raw)
            if value is None:
                return None
            values[name] = value
        return values


def is_template(uri: str) -> bool:
    return "{" in uri or "}" in uri


class _Reader:
    """One pass over the text of a template; ends in a pattern for the part before the query."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.variables: list[str] = []
        self.query: list[str] = []
        self.rests: list[str] = []

    def read(self) -> str:
        pattern, end = "", 0
        for found in _EXPRESSION.finditer(self.text):
            literal = self._literal(end, found.start())
            pattern += re.escape(literal) + self._expression(found, touching=bool(end) and not literal)
            end = found.end()
        return pattern + re.escape(self._literal(end, len(self.text)))

    def _literal(self, start: int, end: int) -> str:
        literal = self.text[start:end]
        stray = re.search(r"[{}]", literal)
        if stray:
            self._refuse(start + stray.start(), "a brace without its other half")
        if self.query and literal:
            self._refuse(start, "text after the query")
        return literal

    def _expression(self, found: re.Match[str], *, touching: bool) -> str:
        at, body = found.start(), found[1]
        if self.query:
            self._refuse(at, "an expression after the query")
        if body.startswith("?") and _QUERY_NAMES.fullmatch(body[1:]):
            for name in body[1:].split(","):
                self._add(name, at)
                self.query.append(name)
            return ""
        parts = _BODY.fullmatch(body)
        if parts is None:
            self._refuse(at, f"{{{body}}}, which is not one variable; several belong in {{?a,b}} only")
        operator, name, modifier = parts.groups()
        if (operator, modifier) not in (("", None), ("+", None), ("/", None), ("/", "*")):
            self._refuse(at, f"{{{body}}}; only {{a}}, {{+a}}, {{/a}}, {{/a*}} and {{?a,b}} can be matched")
        self._add(name, at)
        is_rest = operator == "+" or modifier == "*"
        if touching and (operator != "/" or self.rests):
            self._refuse(at, "an expression that nothing separates from the one before")
        if is_rest and self.rests:
            self._refuse(at, f"a second variable for the rest of a path, after {self.rests[0]!r}")
        if is_rest:
            self.rests.append(name)
        return f"{'/' if operator == '/' else ''}(?P<{name}>{_REST if is_rest else _SEGMENT})"

    def _add(self, name: str, at: int) -> None:
        if name in self.variables:
            self._refuse(at, f"the variable {name!r} a second time")
        self.variables.append(name)

    def _refuse(self, at: int, what: str) -> NoReturn:
        raise ConfigurationError(f"URI template {self.text!r} has, at position {at}, {what}")


def _decoded(raw: str) -> str | None:
    if _ESCAPE.search(raw):
        return None
    try:
        value = unquote(raw, errors="strict")
    except UnicodeDecodeError:
        return None
    return None if "\0" in value else value


def _is_safe_segment(value: str) -> bool:
    return value not in (".", "..") and "/" not in value and "\\" not in value


def _is_safe_path(value: str) -> bool:
    if value.startswith("/") or "\\" in value or _DRIVE.match(value):
        return False
    return not any(segment in (".", "..") for segment in value.split("/"))
