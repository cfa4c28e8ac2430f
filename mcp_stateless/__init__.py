"""Stateless MCP servers on AWS Lambda: typed Python functions in, an MCP endpoint out.

Imports between the modules point down only: errors and principal; protocol (pure); settings; content, questions and
journal; context; definitions; registry; run and the methods; endpoint; http, aws and server on top.
"""

from mcp_stateless.content import (
    Annotations,
    AssistantMessage,
    Audio,
    AudioContent,
    BlobResourceContents,
    CacheHint,
    CallToolResult,
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
from mcp_stateless.context import Context
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ConfigurationError, ResourceNotFound, StepError, ToolError, Unauthorized
from mcp_stateless.identity import TokenVerifier
from mcp_stateless.principal import ANONYMOUS, Principal
from mcp_stateless.questions import AcceptedElicitation, CancelledElicitation, DeclinedElicitation, InputRequired
from mcp_stateless.server import MCPServer
from mcp_stateless.settings import Settings

__all__ = [
    "ANONYMOUS",
    "AcceptedElicitation",
    "Annotations",
    "AssistantMessage",
    "Audio",
    "AudioContent",
    "BlobResourceContents",
    "CacheHint",
    "CallToolResult",
    "CancelledElicitation",
    "Completion",
    "ConfigurationError",
    "Context",
    "DeclinedElicitation",
    "EmbeddedResource",
    "Icon",
    "Image",
    "ImageContent",
    "InputRequired",
    "MCPServer",
    "Message",
    "Principal",
    "ResourceLink",
    "ResourceNotFound",
    "Settings",
    "StepError",
    "TextContent",
    "TextResourceContents",
    "TokenVerifier",
    "Tool",
    "ToolAnnotations",
    "ToolError",
    "Unauthorized",
    "UserMessage",
]
