"""What hosts do to tools that they do not like, silently; said at registration instead.

Owns the limits, each with the hosts that have it. They are warnings: the protocol allows what is named here.
"""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, Final

MOST_SCHEMA_BYTES: Final = 16_384
"""claude.ai and Claude Desktop leave out a tool with a larger input schema."""

_COMPOSITION: Final = ("oneOf", "anyOf", "allOf", "not")
_PROTOCOL_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")
_HOST_NAME: Final = re.compile(r"[a-zA-Z][a-zA-Z0-9_]*")
_LONGEST_HOST_NAME: Final = 40


def host_warnings(name: str, input_schema: Mapping[str, Any]) -> Iterator[str]:
    """One sentence for each rule that the tool breaks."""
    if not _PROTOCOL_NAME.fullmatch(name):
        yield (
            "its name breaks the protocol's rule of 1 to 128 characters out of A-Z a-z 0-9 _ - . "
            "and clients may refuse the whole list"
        )
    elif not _HOST_NAME.fullmatch(name):
        yield "its name is not [a-zA-Z][a-zA-Z0-9_]*, the only form that every host takes (Amazon Q refuses others)"
    if len(name) > _LONGEST_HOST_NAME:
        yield (
            f"its name is longer than {_LONGEST_HOST_NAME} characters; with their prefixes, Gemini CLI, Copilot and "
            "AgentCore cut or refuse names over 63"
        )
    size = len(json.dumps(input_schema, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace"))
    if size > MOST_SCHEMA_BYTES:
        yield f"its input schema is {size} bytes; claude.ai and Claude Desktop drop tools over {MOST_SCHEMA_BYTES}"
    composed = [keyword for keyword in _COMPOSITION if keyword in input_schema]
    if composed:
        yield (
            f"its input schema has {', '.join(composed)} at the root; Claude Code, Codex, Copilot CLI and ChatGPT "
            "drop or rewrite such tools"
        )
