"""What a client may be asked, as values: the request on the wire, what it takes to ask it, how its answer is read."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Generic, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from mcp_stateless.content import Message
from mcp_stateless.definitions.form import form_schema
from mcp_stateless.protocol.revisions import Wire

M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Question:
    """One request to the client."""

    method: str
    params: Wire
    needs: Mapping[str, object]
    """The part of `ClientCapabilities` without which it must not be asked."""
    read: Callable[[Mapping[str, object]], object]
    """Makes the author's value of an answer; raises `ValueError` for an answer that does not fit the question."""

    def to_wire(self) -> Wire:
        return {"method": self.method, "params": self.params}

    @property
    def digest(self) -> str:
        """The same for the same question, in every process."""
        text = json.dumps(self.to_wire(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    def may_be_put_to(self, capabilities: Mapping[str, object]) -> bool:
        return declares(capabilities, self.needs)


@dataclass(frozen=True, slots=True)
class InputRequired:
    """Returned by a function that keeps its own books: ask this, and call me again with the answers.

    The retry finds the answers in `ctx.input_responses`, by the keys used here, and `state` in `ctx.request_state`.
    `state` is any JSON value; it travels to the client, signed and not secret.
    """

    requests: Mapping[str, Question] = field(default_factory=dict)
    state: object = None


@dataclass(frozen=True, slots=True)
class AcceptedElicitation(Generic[M]):
    """The user filled the form in (`data` is the model, or the raw content for a raw schema), or agreed to the URL."""

    data: M
    action: Literal["accept"] = "accept"


@dataclass(frozen=True, slots=True)
class DeclinedElicitation:
    """The user said no."""

    action: Literal["decline"] = "decline"


@dataclass(frozen=True, slots=True)
class CancelledElicitation:
    """The user closed the question, or the host has nobody to ask."""

    action: Literal["cancel"] = "cancel"


@dataclass(frozen=True, slots=True)
class SamplingResult:
    """What the client's model answered."""

    role: str
    content: Sequence[Mapping[str, object]]
    """Content blocks as they came."""
    model: str
    stop_reason: str | None = None

    @property
    def text(self) -> str:
        return "".join(str(block["text"]) for block in self.content if block.get("type") == "text")


@dataclass(frozen=True, slots=True)
class Root:
    """A folder or file the client works in."""

    uri: str
    name: str | None = None


def form(message: str, schema: type[BaseModel] | Mapping[str, Any]) -> Question:
    """A form for the user. Its fields are flat: text, numbers, booleans, choices.

    Raises:
        ConfigurationError: the model has a field that no form can show.
    """
    requested = dict(schema) if isinstance(schema, Mapping) else dict(form_schema(schema))
    params: Wire = {"mode": "form", "message": message, "requestedSchema": requested}

    def read(answer: Mapping[str, object]) -> object:
        content = answer.get("content")
        if _action(answer) != "accept":
            return _refusal(answer)
        if not isinstance(content, dict):
            raise ValueError("an accepted form needs its content")
        if isinstance(schema, Mapping):
            return AcceptedElicitation(content)
        try:
            return AcceptedElicitation(schema.model_validate(content))
        except ValidationError as error:
            raise ValueError("the content does not fit the form") from error

    return Question("elicitation/create", params, {"elicitation": {"form": {}}}, read)


def url(message: str, address: str) -> Question:
    """A page for the user to open; an answer says that the user agreed, not what happened on the page."""

    def read(answer: Mapping[str, object]) -> object:
        return AcceptedElicitation(None) if _action(answer) == "accept" else _refusal(answer)

    params: Wire = {"mode": "url", "message": message, "url": address}
    return Question("elicitation/create", params, {"elicitation": {"url": {}}}, read)


def sampling(messages: str | Sequence[Message], *, max_tokens: int, options: Mapping[str, object]) -> Question:
    """A completion by the client's model. `options` are further fields of `sampling/createMessage`, as on the wire."""
    listed = [Message(role="user", content=messages)] if isinstance(messages, str) else messages
    given = {key: value for key, value in options.items() if value is not None}
    params: Wire = {"messages": [message.to_wire() for message in listed], "maxTokens": max_tokens, **given}
    return Question("sampling/createMessage", params, {"sampling": {}}, _read_sampling)


def _read_sampling(answer: Mapping[str, object]) -> SamplingResult:
    content, role, model = answer.get("content"), answer.get("role"), answer.get("model")
    listed = content if isinstance(content, list) else [content]
    blocks = [block for block in listed if isinstance(block, dict)]
    if not isinstance(role, str) or not isinstance(model, str) or len(blocks) != len(listed):
        raise ValueError("a sampling answer needs role, content and model")
    stop_reason = answer.get("stopReason")
    return SamplingResult(role, blocks, model, stop_reason if isinstance(stop_reason, str) else None)


def _read_roots(answer: Mapping[str, object]) -> list[Root]:
    roots = answer.get("roots")
    if not isinstance(roots, list) or not all(_is_root(root) for root in roots):
        raise ValueError("a roots answer needs roots, each with its uri")
    return [Root(root["uri"], root.get("name")) for root in roots]


def _is_root(root: object) -> bool:
    return isinstance(root, dict) and isinstance(root.get("uri"), str) and isinstance(root.get("name", ""), str)


def _action(answer: Mapping[str, object]) -> str:
    action = answer.get("action")
    if action not in ("accept", "decline", "cancel"):
        raise ValueError("an elicitation answer needs an action")
    return str(action)


def _refusal(answer: Mapping[str, object]) -> DeclinedElicitation | CancelledElicitation:
    return DeclinedElicitation() if answer["action"] == "decline" else CancelledElicitation()


FORM: Final = form("", {})
URL: Final = url("", "")
SAMPLING: Final = sampling("", max_tokens=1, options={})
ROOTS: Final = Question("roots/list", {}, {"roots": {}}, _read_roots)
"""The four kinds; only `ROOTS` is ever put as it stands, the others tell what it takes to ask one of their kind."""


def declares(capabilities: Mapping[str, object], needs: Mapping[str, object]) -> bool:
    """Whether `ClientCapabilities` of a request cover what a question or tool needs."""
    for name, details in needs.items():
        declared = capabilities.get(name)
        if not isinstance(declared, dict):
            return False
        if name == "elicitation":
            # `elicitation: {}` is the spelling from before there were modes, and means forms.
            declared = declared or {"form": {}}
        assert isinstance(details, Mapping)
        if not all(key in declared for key in details):
            return False
    return True
