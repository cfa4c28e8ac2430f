"""The completion function: what it is given, what becomes of its values."""

from typing import Any

import mcp_types
import pytest

from mcp_stateless.content import (
    Completion,
    CompletionArgument,
    CompletionContext,
    PromptReference,
    ResourceTemplateReference,
)
from mcp_stateless.context import Context
from mcp_stateless.definitions.completion import CompletionProvider
from mcp_stateless.errors import ConfigurationError, InvalidParams, ToolError

PROMPTS: dict[str, object] = {"review": None}
TEMPLATES: dict[str, object] = {"docs://{id}": None}
ARGUMENT = {"name": "id", "value": "a"}


async def complete(
    ref: PromptReference | ResourceTemplateReference,
    argument: CompletionArgument,
    context: CompletionContext | None,
) -> list[str]:
    return []


def provider() -> CompletionProvider:
    return CompletionProvider.from_function(complete)


def test_the_reference_the_argument_and_the_context_are_values() -> None:
    params: dict[str, object] = {"ref": {"type": "ref/prompt", "name": "review"}, "argument": ARGUMENT}
    assert provider().bind(params, PROMPTS, TEMPLATES) == {
        "ref": PromptReference("review"),
        "argument": CompletionArgument("id", "a"),
        "context": None,
    }
    params = {
        "ref": {"type": "ref/resource", "uri": "docs://{id}"},
        "argument": ARGUMENT,
        "context": {"arguments": {"a": "b"}},
    }
    bound = provider().bind(params, PROMPTS, TEMPLATES)
    assert bound["ref"] == ResourceTemplateReference("docs://{id}")
    assert bound["context"] == CompletionContext({"a": "b"})


def test_parameters_may_have_other_names_and_a_context_may_come_along() -> None:
    def suggest(which: object, ctx: Context[Any], what: object, filled: object) -> None: ...

    made = CompletionProvider.from_function(suggest)
    params = {"ref": {"type": "ref/prompt", "name": "review"}, "argument": ARGUMENT, "context": {}}
    bound = made.bind(params, PROMPTS, TEMPLATES)
    assert list(bound) == ["which", "what", "filled"]
    assert bound["filled"] == CompletionContext()
    assert (made.name, made.context_parameter, made.is_async) == ("suggest", "ctx", False)
    assert made.context_type is Context
    assert provider().is_async


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"argument": ARGUMENT}, '"ref" must'),
        ({"ref": {"type": "ref/other", "name": "x"}, "argument": ARGUMENT}, '"ref" must'),
        ({"ref": {"type": "ref/prompt", "name": "nope"}, "argument": ARGUMENT}, "Unknown prompt"),
        ({"ref": {"type": "ref/resource", "uri": "docs://1"}, "argument": ARGUMENT}, "Unknown resource template"),
        ({"ref": {"type": "ref/prompt", "name": "review"}}, '"argument" must'),
        ({"ref": {"type": "ref/prompt", "name": "review"}, "argument": {"name": "a", "value": 5}}, '"argument" must'),
        ({"ref": {"type": "ref/prompt", "name": "review"}, "argument": ARGUMENT, "context": []}, '"context" must'),
        (
            {"ref": {"type": "ref/prompt", "name": "review"}, "argument": ARGUMENT, "context": {"arguments": {"a": 1}}},
            '"context" must',
        ),
    ],
)
def test_malformed_params_are_refused(params: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidParams, match=message):
        provider().bind(params, PROMPTS, TEMPLATES)


@pytest.mark.parametrize(
    ("value", "wire"),
    [
        (None, {"values": []}),
        (["a", "b"], {"values": ["a", "b"]}),
        (("a",), {"values": ["a"]}),
        ({"a": 1}.keys(), {"values": ["a"]}),
        (Completion(["a"], total=3, has_more=True), {"values": ["a"], "total": 3, "hasMore": True}),
    ],
)
def test_values_become_a_completion(value: object, wire: dict[str, object]) -> None:
    made = provider().completion(value)
    assert made == wire
    mcp_types.CompleteResult.model_validate({"completion": made})


@pytest.mark.parametrize("value", ["abc", 5, [1], {"a": 1}, Completion([1])])  # type: ignore[list-item]
def test_what_is_no_list_of_texts_is_refused(value: object) -> None:
    with pytest.raises(ToolError, match="return a list of str"):
        provider().completion(value)


def test_a_function_of_another_shape_is_refused() -> None:
    def two(ref: object, argument: object) -> None: ...

    with pytest.raises(ConfigurationError, match="takes three parameters: ref, argument, context"):
        CompletionProvider.from_function(two)
