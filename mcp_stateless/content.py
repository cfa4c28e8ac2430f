"""Wire values an author may return or receive: content blocks, resource contents, messages, hints, completions.

Owns their field names and how each becomes the JSON of the newest revision (`to_wire`). Knows nothing of revisions:
what an older one may not see is removed elsewhere, from the dicts. Nothing is validated against a client, no I/O is
done at construction; only `Image` and `Audio` read a file, when they are turned into content.
"""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache
from os import PathLike
from pathlib import Path
from typing import Final, Literal, TypeAlias

Role: TypeAlias = Literal["user", "assistant"]

MAX_COMPLETION_VALUES: Final = 100
"""Values in one completion answer; the protocol's limit."""

_IMAGE_TYPES: Final = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".svg": "image/svg+xml",
    ".bmp": "image/bmp",
    ".avif": "image/avif",
}
_AUDIO_TYPES: Final = {
    ".wav": "audio/wav",
    ".mp3": "audio/mpeg",
    ".ogg": "audio/ogg",
    ".flac": "audio/flac",
    ".aac": "audio/aac",
    ".m4a": "audio/mp4",
}


@cache
def _wire_name(name: str) -> str:
    if name == "meta":
        return "_meta"
    head, *rest = name.split("_")
    return head + "".join(part.capitalize() for part in rest)


def _wire_value(value: object) -> object:
    if isinstance(value, WireValue):
        return value.to_wire()
    if isinstance(value, bytes):
        return base64.b64encode(value).decode("ascii")
    if isinstance(value, list | tuple):
        return [_wire_value(item) for item in value]
    return value


class WireValue:
    """Base of the frozen dataclasses below: camelCase names, `_meta` for `meta`, nothing for None."""

    __slots__ = ()

    def to_wire(self) -> dict[str, object]:
        values = ((item.name, getattr(self, item.name)) for item in fields(self))  # type: ignore[arg-type]  # dataclass
        return {_wire_name(name): _wire_value(value) for name, value in values if value is not None}


@dataclass(frozen=True, slots=True)
class Icon(WireValue):
    """An icon by URL (`https:` or `data:`); `sizes` like `["48x48"]` or `["any"]`."""

    src: str
    mime_type: str | None = None
    sizes: Sequence[str] | None = None
    theme: Literal["light", "dark"] | None = None


@dataclass(frozen=True, slots=True)
class Annotations(WireValue):
    """Hints for the client about a block or a resource. `priority` runs from 0 to 1, `last_modified` is ISO 8601."""

    audience: Sequence[Role] | None = None
    priority: float | None = None
    last_modified: str | None = None

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise ValueError(f"Annotations(priority={self.priority!r}): a priority lies between 0 and 1")


@dataclass(frozen=True, slots=True)
class ToolAnnotations(WireValue):
    """Hints about what a tool does. What is not said stays absent: the protocol's defaults then hold."""

    title: str | None = None
    read_only_hint: bool | None = None
    destructive_hint: bool | None = None
    idempotent_hint: bool | None = None
    open_world_hint: bool | None = None


@dataclass(frozen=True, slots=True)
class TextContent(WireValue):
    type: Literal["text"] = field(default="text", kw_only=True)
    text: str
    annotations: Annotations | None = None
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ImageContent(WireValue):
    """An image; `data` is base64 text, or bytes to be encoded."""

    type: Literal["image"] = field(default="image", kw_only=True)
    data: str | bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class AudioContent(WireValue):
    """A sound; `data` is base64 text, or bytes to be encoded."""

    type: Literal["audio"] = field(default="audio", kw_only=True)
    data: str | bytes
    mime_type: str
    annotations: Annotations | None = None
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class TextResourceContents(WireValue):
    uri: str
    text: str
    mime_type: str | None = None
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class BlobResourceContents(WireValue):
    """Binary contents; `blob` is base64 text, or bytes to be encoded."""

    uri: str
    blob: str | bytes
    mime_type: str | None = None
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class EmbeddedResource(WireValue):
    type: Literal["resource"] = field(default="resource", kw_only=True)
    resource: TextResourceContents | BlobResourceContents
    annotations: Annotations | None = None
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class ResourceLink(WireValue):
    """A resource the client may read later; it need not be one of the server's listed resources."""

    type: Literal["resource_link"] = field(default="resource_link", kw_only=True)
    uri: str
    name: str
    title: str | None = None
    description: str | None = None
    mime_type: str | None = None
    size: int | None = None
    icons: Sequence[Icon] | None = None
    annotations: Annotations | None = None
    meta: Mapping[str, object] | None = None


ContentBlock: TypeAlias = TextContent | ImageContent | AudioContent | EmbeddedResource | ResourceLink
ResourceContents: TypeAlias = TextResourceContents | BlobResourceContents


@dataclass(frozen=True, slots=True)
class _Media:
    path: str | PathLike[str] | None = None
    data: bytes | None = None
    format: str | None = None

    def __post_init__(self) -> None:
        if (self.path is None) == (self.data is None):
            raise ValueError(f"{type(self).__name__} needs either path= or data=, and not both")

    def _read(self) -> bytes:
        if self.data is not None:
            return self.data
        assert self.path is not None  # __post_init__ saw to it
        return Path(self.path).read_bytes()

    def _mime_type(self, family: str, known: Mapping[str, str], raw: str) -> str:
        if self.format is not None:
            suffix = self.format.lower().removeprefix(".")
            return known.get(f".{suffix}", f"{family}/{suffix}")
        if self.path is not None:
            return known.get(Path(self.path).suffix.lower(), "application/octet-stream")
        return raw


@dataclass(frozen=True, slots=True)
class Image(_Media):
    """An image to return: a file, or its bytes with a format such as `"png"` (the default for bytes)."""

    def to_image_content(self) -> ImageContent:
        return ImageContent(self._read(), self._mime_type("image", _IMAGE_TYPES, "image/png"))


@dataclass(frozen=True, slots=True)
class Audio(_Media):
    """A sound to return: a file, or its bytes with a format such as `"wav"` (the default for bytes)."""

    def to_audio_content(self) -> AudioContent:
        return AudioContent(self._read(), self._mime_type("audio", _AUDIO_TYPES, "audio/wav"))


def as_block(value: object) -> ContentBlock | None:
    """The content block that `value` is or stands for; None where it is neither."""
    match value:
        case str():
            return TextContent(value)
        case Image():
            return value.to_image_content()
        case Audio():
            return value.to_audio_content()
        case TextContent() | ImageContent() | AudioContent() | EmbeddedResource() | ResourceLink():
            return value
        case TextResourceContents() | BlobResourceContents():
            return EmbeddedResource(value)
        case _:
            return None


@dataclass(frozen=True, slots=True)
class CallToolResult:
    """A whole tool result, for a tool that wants to say everything itself.

    Where the tool declares an output schema, `structured_content` must fit it unless `is_error` is set.
    `structured_content=None` means that there is none.
    """

    content: Sequence[ContentBlock | Image | Audio | str] = ()
    structured_content: object = None
    is_error: bool = False
    meta: Mapping[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a prompt; text and media helpers become content blocks."""

    content: str | ContentBlock | Image | Audio
    role: Role = "user"

    def __post_init__(self) -> None:
        if self.role not in ("user", "assistant"):
            raise ValueError(f"Message(role={self.role!r}): a role is 'user' or 'assistant'")
        if not isinstance(self.content, str | Image | Audio | ContentBlock):
            raise ValueError(f"{type(self).__name__}: content is text, a content block, Image or Audio")

    def to_wire(self) -> dict[str, object]:
        block = as_block(self.content)
        assert block is not None  # __post_init__ saw to it
        return {"role": self.role, "content": block.to_wire()}


@dataclass(frozen=True, slots=True)
class UserMessage(Message):
    pass


@dataclass(frozen=True, slots=True)
class AssistantMessage(Message):
    role: Role = "assistant"


@dataclass(frozen=True, slots=True)
class Completion(WireValue):
    """Suggested values, best first. Only the first hundred reach the client; the rest shows in `has_more`."""

    values: Sequence[str]
    total: int | None = None
    has_more: bool | None = None

    def __post_init__(self) -> None:
        if isinstance(self.values, str):
            raise ValueError("Completion(values=...) takes a list of strings, not one string")

    def to_wire(self) -> dict[str, object]:
        values = list(self.values)
        if len(values) <= MAX_COMPLETION_VALUES:
            return WireValue.to_wire(self)
        total = len(values) if self.total is None else self.total
        return {"values": values[:MAX_COMPLETION_VALUES], "total": total, "hasMore": True}


@dataclass(frozen=True, slots=True)
class CacheHint:
    """How long clients at 2026-07-28 may keep an answer, and whether callers may share it.

    Where the caller is known, an answer is private whatever is said here.
    """

    ttl_ms: int
    scope: Literal["public", "private"] = "public"

    def __post_init__(self) -> None:
        if self.ttl_ms < 0:
            raise ValueError("CacheHint(ttl_ms=...) takes 0 or more milliseconds")


@dataclass(frozen=True, slots=True)
class PromptReference(WireValue):
    """The prompt whose argument is being completed."""

    type: Literal["ref/prompt"] = field(default="ref/prompt", kw_only=True)
    name: str


@dataclass(frozen=True, slots=True)
class ResourceTemplateReference(WireValue):
    """The resource template, by its URI template, whose variable is being completed."""

    type: Literal["ref/resource"] = field(default="ref/resource", kw_only=True)
    uri: str


@dataclass(frozen=True, slots=True)
class CompletionArgument(WireValue):
    """The argument being completed, and what the user has typed of it."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class CompletionContext(WireValue):
    """Arguments the user has already filled in."""

    arguments: Mapping[str, str] | None = None
