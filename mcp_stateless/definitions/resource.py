"""Resources: a function behind one URI, or behind all URIs of a template."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from mcp_stateless.content import Annotations, BlobResourceContents, CacheHint, Icon, TextResourceContents
from mcp_stateless.definitions.json_text import encoded, jsonable
from mcp_stateless.definitions.output import Wire
from mcp_stateless.definitions.parameters import function_name, is_async
from mcp_stateless.definitions.signature import HasSignature, Signature
from mcp_stateless.definitions.tool import icons_and_meta
from mcp_stateless.definitions.uri_template import UriTemplate, is_template
from mcp_stateless.errors import ArgumentError, ConfigurationError, InvalidParams

_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.\-]*:.+", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Definition(HasSignature):
    """What the two kinds share."""

    name: str
    fn: Callable[..., Any]
    signature: Signature
    title: str | None
    description: str | None
    mime_type: str | None
    icons: Sequence[Icon]
    annotations: Annotations | None
    meta: Mapping[str, object] | None
    is_async: bool
    in_thread: bool
    cache_hint: CacheHint | None = None

    def _wire(self, key: str, uri: str) -> Wire:
        optional = {"title": self.title, "description": self.description, "mimeType": self.mime_type}
        wire: Wire = {key: uri, "name": self.name, **{k: value for k, value in optional.items() if value}}
        if self.annotations is not None:
            wire["annotations"] = self.annotations.to_wire()
        return {**wire, **icons_and_meta(self.icons, self.meta)}

    def _contents(self, value: object, uri: str) -> list[Wire]:
        ready = (TextResourceContents, BlobResourceContents)
        if isinstance(value, list | tuple) and value and all(isinstance(item, ready) for item in value):
            return [self._one(item, uri) for item in value]
        return [self._one(value, uri)]

    def _one(self, value: object, uri: str) -> Wire:
        match value:
            case TextResourceContents() | BlobResourceContents():
                wire = value.to_wire()
            case str():
                wire = TextResourceContents(uri, value, self.mime_type or "text/plain").to_wire()
            case bytes():
                wire = BlobResourceContents(uri, value, self.mime_type or "application/octet-stream").to_wire()
            case _:
                text = encoded(jsonable(value, self.name), self.name)
                wire = TextResourceContents(uri, text, self.mime_type or "application/json").to_wire()
        encoded(wire, self.name)
        return wire


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource(_Definition):
    """A function behind one URI; it takes nothing but, if it likes, a Context."""

    uri: str
    size: int | None

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        uri: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Icon] | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, object] | None = None,
        size: int | None = None,
        in_thread: bool = True,
        cache_hint: CacheHint | None = None,
    ) -> "Resource":
        """Raises ConfigurationError for a URI without a scheme, or a function that takes arguments."""
        label = f"Resource {uri!r}"
        _check_uri(uri, label)
        if is_template(uri):
            raise ConfigurationError(f"{label} is a template; make a ResourceTemplate of it")
        found = function_name(fn, name, "resource")
        signature = Signature.of(fn, name=label)
        if signature.names:
            raise ConfigurationError(
                f"{label}: the function takes {', '.join(signature.names)}, and this URI gives no values; put the "
                "names in braces into the URI, or drop the parameters"
            )
        return cls(
            uri=uri,
            size=size,
            name=found,
            fn=fn,
            signature=signature,
            title=title,
            description=signature.docstring.description if description is None else description,
            mime_type=mime_type,
            icons=tuple(icons or ()),
            annotations=annotations,
            meta=meta,
            is_async=is_async(fn),
            in_thread=in_thread,
            cache_hint=cache_hint,
        )

    def to_wire(self) -> Wire:
        wire = self._wire("uri", self.uri)
        return wire if self.size is None else {**wire, "size": self.size}

    def contents(self, value: object) -> list[Wire]:
        """What the function returned: text, bytes, ready contents or a list of them; other values as JSON text."""
        return self._contents(value, self.uri)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceTemplate(_Definition):
    """A function behind all URIs of a template, whose variables are its arguments."""

    template: UriTemplate

    @classmethod
    def from_function(
        cls,
        fn: Callable[..., Any],
        *,
        uri_template: str,
        name: str | None = None,
        title: str | None = None,
        description: str | None = None,
        mime_type: str | None = None,
        icons: Sequence[Icon] | None = None,
        annotations: Annotations | None = None,
        meta: Mapping[str, object] | None = None,
        in_thread: bool = True,
        cache_hint: CacheHint | None = None,
    ) -> "ResourceTemplate":
        """Raises ConfigurationError where template and function do not name the same things."""
        label = f"Resource template {uri_template!r}"
        _check_uri(uri_template, label)
        template = UriTemplate.parse(uri_template)
        found = function_name(fn, name, "resource template")
        signature = Signature.of(fn, name=label)
        _check_variables(template, signature, label)
        return cls(
            template=template,
            name=found,
            fn=fn,
            signature=signature,
            title=title,
            description=signature.docstring.description if description is None else description,
            mime_type=mime_type,
            icons=tuple(icons or ()),
            annotations=annotations,
            meta=meta,
            is_async=is_async(fn),
            in_thread=in_thread,
            cache_hint=cache_hint,
        )

    @property
    def uri_template(self) -> str:
        return self.template.text

    def to_wire(self) -> Wire:
        return self._wire("uriTemplate", self.uri_template)

    def match(self, uri: str) -> dict[str, str] | None:
        """The variables' values; None if the URI is not of this template, or a value does not fit its parameter."""
        values = self.template.match(uri)
        if values is None:
            return None
        try:
            self.signature.bind(values)
        except ArgumentError:
            return None
        return values

    def bind(self, variables: Mapping[str, str]) -> dict[str, object]:
        """Keyword arguments for the function, each value read as its parameter's type.

        Raises:
            InvalidParams: a value does not fit; `match` gives none of those.
        """
        try:
            return self.signature.bind(variables)
        except ArgumentError as error:
            raise InvalidParams(str(error)) from error

    def contents(self, value: object, uri: str) -> list[Wire]:
        """What the function returned for `uri`; see `Resource.contents`."""
        return self._contents(value, uri)


def _check_uri(uri: str, label: str) -> None:
    if not _SCHEME.fullmatch(uri):
        raise ConfigurationError(f"{label}: a URI starts with a scheme, such as docs://guide")


def _check_variables(template: UriTemplate, signature: Signature, label: str) -> None:
    unused = [name for name in template.variables if name not in signature.names]
    if unused:
        raise ConfigurationError(f"{label}: the function has no parameter {', '.join(unused)}")
    unmet = sorted(signature.required - set(template.variables))
    if unmet:
        raise ConfigurationError(f"{label}: nothing in it gives the parameter {', '.join(unmet)}; name it in braces")
    bare = sorted(signature.required & template.query)
    if bare:
        raise ConfigurationError(f"{label}: a query may leave out {', '.join(bare)}, so the parameter needs a default")
