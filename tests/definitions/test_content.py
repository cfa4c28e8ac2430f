"""The wire form of what authors return."""

from collections.abc import Callable
from pathlib import Path

import mcp_types
import pytest

from mcp_stateless.content import (
    Annotations,
    AssistantMessage,
    Audio,
    AudioContent,
    BlobResourceContents,
    Completion,
    EmbeddedResource,
    Icon,
    Image,
    ImageContent,
    Message,
    ResourceLink,
    TextContent,
    TextResourceContents,
    ToolAnnotations,
    UserMessage,
)

HINTS = Annotations(audience=["user"], priority=0.5, last_modified="2026-01-02T00:00:00Z")
ICON = Icon("https://example.com/i.png", mime_type="image/png", sizes=["48x48"], theme="dark")
LINK = ResourceLink(
    "docs://a", "a", title="A", description="d", mime_type="text/plain", size=3, icons=[ICON], meta={"k": 1}
)


@pytest.mark.parametrize(
    "block",
    [
        TextContent("hello", annotations=HINTS, meta={"k": {"deep_key": 1}}),
        ImageContent(b"png", "image/png"),
        AudioContent("d2F2", "audio/wav", meta={}),
        EmbeddedResource(TextResourceContents("docs://a", "text", "text/plain"), annotations=HINTS),
        EmbeddedResource(BlobResourceContents("docs://b", b"\x00")),
        LINK,
    ],
)
def test_content_blocks_fit_the_wire_models_exactly(block: TextContent) -> None:
    wire = block.to_wire()
    parsed = mcp_types.CallToolResult.model_validate({"content": [wire]}).content[0]
    assert parsed.model_dump(mode="json", by_alias=True, exclude_none=True) == wire


def test_names_are_camel_case_and_absent_values_stay_absent() -> None:
    assert ICON.to_wire() == {
        "src": "https://example.com/i.png",
        "mimeType": "image/png",
        "sizes": ["48x48"],
        "theme": "dark",
    }
    assert ToolAnnotations().to_wire() == {}
    assert ToolAnnotations(title="T", read_only_hint=False).to_wire() == {"title": "T", "readOnlyHint": False}
    assert LINK.to_wire()["_meta"] == {"k": 1}


def test_bytes_are_encoded_and_text_is_taken_as_encoded() -> None:
    assert ImageContent(b"png", "image/png").to_wire()["data"] == "cG5n"
    assert ImageContent("cG5n", "image/png").to_wire()["data"] == "cG5n"


@pytest.mark.parametrize(
    ("media", "mime_type"),
    [
        (Image(data=b"x"), "image/png"),
        (Image(data=b"x", format="JPG"), "image/jpeg"),
        (Image(data=b"x", format="tiff"), "image/tiff"),
        (Image(data=b""), "image/png"),
    ],
)
def test_an_image_of_bytes_has_the_type_of_its_format(media: Image, mime_type: str) -> None:
    assert media.to_image_content().mime_type == mime_type


def test_media_files_have_the_type_of_their_suffix(tmp_path: Path) -> None:
    for name, mime_type in {"a.webp": "image/webp", "a.JPG": "image/jpeg", "a.bin": "application/octet-stream"}.items():
        path = tmp_path / name
        path.write_bytes(b"data")
        assert Image(path=path).to_image_content() == ImageContent(b"data", mime_type)
    sound = tmp_path / "a.mp3"
    sound.write_bytes(b"data")
    assert Audio(str(sound)).to_audio_content() == AudioContent(b"data", "audio/mpeg")
    assert Audio(data=b"x", format="m4a").to_audio_content().mime_type == "audio/mp4"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Image(), "Image needs either path= or data="),
        (lambda: Audio(path="a.wav", data=b"x"), "Audio needs either path= or data="),
        (lambda: Annotations(priority=2), "between 0 and 1"),
        (lambda: Annotations(priority=float("nan")), "between 0 and 1"),
        (lambda: Message("text", role="system"), "'user' or 'assistant'"),  # type: ignore[arg-type]
        (lambda: UserMessage(5), "content is text"),  # type: ignore[arg-type]
        (lambda: Completion("abc"), "list of strings"),
    ],
)
def test_bad_values_are_refused_when_they_are_made(build: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        build()


def test_messages_hold_text_media_or_blocks() -> None:
    assert UserMessage("hi").to_wire() == {"role": "user", "content": {"type": "text", "text": "hi"}}
    assert AssistantMessage(Image(data=b"x")).to_wire()["role"] == "assistant"
    wire = Message(content=LINK, role="assistant").to_wire()
    mcp_types.PromptMessage.model_validate(wire)


def test_a_completion_is_cut_at_a_hundred_values() -> None:
    assert Completion(["a"]).to_wire() == {"values": ["a"]}
    assert Completion(["a"], total=7, has_more=True).to_wire() == {"values": ["a"], "total": 7, "hasMore": True}
    hundred = [str(number) for number in range(100)]
    assert Completion(hundred).to_wire() == {"values": hundred}
    assert Completion([*hundred, "x"]).to_wire() == {"values": hundred, "total": 101, "hasMore": True}
    assert Completion([*hundred, "x"], total=500).to_wire()["total"] == 500


def test_values_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        TextContent("a").text = "b"  # type: ignore[misc]
