"""Prompts: arguments, messages, listing."""

from pathlib import Path
from typing import Any

import mcp_types
import pytest
from pydantic import BaseModel, Field

from mcp_stateless.content import (
    AssistantMessage,
    EmbeddedResource,
    Icon,
    Image,
    TextContent,
    TextResourceContents,
    UserMessage,
)
from mcp_stateless.context import Context
from mcp_stateless.definitions.prompt import Prompt
from mcp_stateless.errors import ConfigurationError, InvalidParams, ToolError


class Span(BaseModel):
    start: int


def review(
    ctx: Context[Any],
    code: str,
    lines: int = Field(10, title="Lines", description="how many"),
    span: Span | None = None,
    strict: bool = False,
) -> str:
    """Review code.

    :param code: what to review
    """
    return code


def test_arguments_are_listed_with_what_is_known_of_them() -> None:
    prompt = Prompt.from_function(review, title="Review", icons=[Icon("data:,")], meta={"k": 1})
    wire = prompt.to_wire()
    assert wire == {
        "name": "review",
        "title": "Review",
        "description": "Review code.",
        "arguments": [
            {"name": "code", "description": "what to review", "required": True},
            {"name": "lines", "title": "Lines", "description": "how many", "required": False},
            {"name": "span", "required": False},
            {"name": "strict", "required": False},
        ],
        "icons": [{"src": "data:,"}],
        "_meta": {"k": 1},
    }
    mcp_types.Prompt.model_validate(wire)
    assert (prompt.context_parameter, prompt.context_type) == ("ctx", Context)


def test_a_prompt_without_parameters_lists_no_arguments() -> None:
    def hello() -> str:
        return "hello"

    assert Prompt.from_function(hello, description="Says hello").to_wire() == {
        "name": "hello",
        "description": "Says hello",
    }


def test_texts_are_read_as_their_types() -> None:
    prompt = Prompt.from_function(review)
    given = {"code": "5", "lines": "5", "span": '{"start": 1}', "strict": "true"}
    assert prompt.bind(given) == {"code": "5", "lines": 5, "span": Span(start=1), "strict": True}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "code: required"),
        ({"code": "a", "lines": "many"}, "lines: should be a valid integer"),
        ({"code": "a", "other": "b"}, "other: unknown argument"),
    ],
)
def test_arguments_that_do_not_fit_are_invalid_params(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParams, match=message):
        Prompt.from_function(review).bind(arguments)


TEXT = {"type": "text", "text": "hi"}


@pytest.mark.parametrize(
    ("value", "messages"),
    [
        ("hi", [{"role": "user", "content": TEXT}]),
        (["hi", AssistantMessage("hi")], [{"role": "user", "content": TEXT}, {"role": "assistant", "content": TEXT}]),
        ((UserMessage(TextContent("hi")),), [{"role": "user", "content": TEXT}]),
        (TextContent("hi"), [{"role": "user", "content": TEXT}]),
        ({"role": "assistant", "content": "hi"}, [{"role": "assistant", "content": TEXT}]),
        ({"role": "user", "content": TEXT}, [{"role": "user", "content": TEXT}]),
        ([], []),
        (
            Image(data=b"x"),
            [{"role": "user", "content": {"type": "image", "data": "eA==", "mimeType": "image/png"}}],
        ),
    ],
)
def test_what_a_prompt_returns_becomes_messages(value: object, messages: list[object]) -> None:
    rendered = Prompt.from_function(review).messages(value)
    assert rendered == messages
    mcp_types.GetPromptResult.model_validate({"messages": rendered})


def test_an_embedded_resource_is_a_message() -> None:
    block = EmbeddedResource(TextResourceContents("docs://a", "text"))
    (message,) = Prompt.from_function(review).messages([block])
    assert message["content"] == {"type": "resource", "resource": {"uri": "docs://a", "text": "text"}}


@pytest.mark.parametrize("value", [5, None, {"role": "system", "content": "x"}, [b"x"], {"role": "user", "content": 5}])
def test_what_is_no_message_is_refused_by_type(value: object) -> None:
    with pytest.raises(ToolError, match=r"Prompt 'review' returned a \w+; return text"):
        Prompt.from_function(review).messages(value)


def test_unreadable_media_and_text_are_refused(tmp_path: Path) -> None:
    prompt = Prompt.from_function(review)
    with pytest.raises(ToolError, match="file cannot be read"):
        prompt.messages(Image(path=tmp_path / "missing.png"))
    with pytest.raises(ToolError, match="lone surrogate"):
        prompt.messages("\ud800")


def test_a_prompt_needs_a_name_and_named_parameters() -> None:
    with pytest.raises(ConfigurationError, match="A prompt needs a name"):
        Prompt.from_function(lambda: "x")

    def starred(*texts: str) -> str:
        return ""

    with pytest.raises(ConfigurationError, match="Prompt 'starred'"):
        Prompt.from_function(starred)
