"""What a server offers: its name, its tools, prompts and resources, and the capabilities that follow from them."""

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Literal, TypeAlias, TypeVar

from mcp_stateless.content import CacheHint, Icon
from mcp_stateless.definitions.completion import CompletionProvider
from mcp_stateless.definitions.parameters import ASKING, names_one_of
from mcp_stateless.definitions.prompt import Prompt
from mcp_stateless.definitions.resource import Resource, ResourceTemplate
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ConfigurationError
from mcp_stateless.principal import Principal
from mcp_stateless.protocol.revisions import Wire

MOST_TOOLS: Final = 100
"""Windsurf stops at 100 tools, VS Code at 128 across servers; further ones are dropped without a word."""

log = logging.getLogger(__name__)

D = TypeVar("D")

Visible: TypeAlias = Callable[[Principal, Tool | Prompt | Resource | ResourceTemplate], bool]
"""Whether a caller sees a definition at all; one that it does not see is unknown to it."""


@dataclass(frozen=True, slots=True)
class Implementation:
    """The server's own name card."""

    name: str
    version: str
    title: str | None = None
    description: str | None = None
    website_url: str | None = None
    icons: Sequence[Icon] = ()

    def to_wire(self) -> Wire:
        optional = {"title": self.title, "description": self.description, "websiteUrl": self.website_url}
        wire: Wire = {"name": self.name, "version": self.version}
        wire.update({key: value for key, value in optional.items() if value is not None})
        if self.icons:
            wire["icons"] = [icon.to_wire() for icon in self.icons]
        return wire


@dataclass(slots=True)
class Registry:
    """Definitions in the order they were registered, which is the order clients see."""

    implementation: Implementation
    instructions: str | None = None
    tools: dict[str, Tool] = field(default_factory=dict)
    prompts: dict[str, Prompt] = field(default_factory=dict)
    resources: dict[str, Resource] = field(default_factory=dict)
    templates: dict[str, ResourceTemplate] = field(default_factory=dict)
    completion: CompletionProvider | None = None
    cache_hints: Mapping[str, CacheHint] = field(default_factory=dict)
    """By method; a resource's own hint comes before that of `resources/read`."""
    visible: Visible | None = None
    own_tools: set[str] = field(default_factory=set)
    """Names of the server's own tools, which every caller sees."""

    def add_tool(self, tool: Tool) -> None:
        _add(self.tools, tool.name, tool, "tool", "name=")
        if len(self.tools) == MOST_TOOLS + 1:
            log.warning("The server has more than %d tools; several hosts drop the rest without a word", MOST_TOOLS)

    def add_prompt(self, prompt: Prompt) -> None:
        _add(self.prompts, prompt.name, prompt, "prompt", "name=")

    def add_resource(self, resource: Resource) -> None:
        _add(self.resources, resource.uri, resource, "resource", "URI")

    def add_template(self, template: ResourceTemplate) -> None:
        _add(self.templates, template.uri_template, template, "resource template", "URI template")

    def set_completion(self, completion: CompletionProvider) -> None:
        if self.completion is not None:
            raise ConfigurationError(
                "The server has a completion function already; one function answers for all prompts and templates"
            )
        self.completion = completion

    def seen_by(self, principal: Principal) -> "Registry":
        """What this caller sees, in lists and in calls alike."""
        visible = self.visible
        if visible is None:
            return self
        return replace(
            self,
            tools={
                name: item for name, item in self.tools.items() if name in self.own_tools or visible(principal, item)
            },
            prompts={name: item for name, item in self.prompts.items() if visible(principal, item)},
            resources={uri: item for uri, item in self.resources.items() if visible(principal, item)},
            templates={uri: item for uri, item in self.templates.items() if visible(principal, item)},
        )

    def asking(self) -> list[str]:
        """Names of what may ask the client something."""
        tools = [tool.name for tool in self.tools.values() if tool.asks]
        others: list[Prompt | ResourceTemplate] = [*self.prompts.values(), *self.templates.values()]
        return tools + [other.name for other in others if names_one_of(ASKING, other.fn)]

    def fingerprint(self, digest: str) -> str:
        """What a recorded call is compared by: the server's version, and the digest of what its function takes."""
        return f"{self.implementation.version}/{digest}"

    @property
    def has_long_tools(self) -> bool:
        return any(tool.long_running or tool.detaches for tool in self.tools.values())

    def gives_client_tokens(self, setting: Literal["auto", "always", "never"]) -> bool:
        """Whether legacy clients get a token: it is only good for asking them something."""
        return setting == "always" or (setting == "auto" and any(tool.asks for tool in self.tools.values()))

    def capabilities(self, *, logging: bool) -> Wire:
        """What this server serves and nothing else: list changes are never pushed, so `listChanged` is not offered."""
        offered: Mapping[str, bool] = {
            "tools": bool(self.tools),
            "prompts": bool(self.prompts),
            "resources": bool(self.resources or self.templates),
            "completions": self.completion is not None,
            "logging": logging,
        }
        return {name: {} for name, is_offered in offered.items() if is_offered}


def _add(known: dict[str, D], key: str, definition: D, kind: str, what: str) -> None:
    if key in known:
        raise ConfigurationError(f"The {kind} {key!r} is registered twice; give one of them another {what}")
    known[key] = definition
