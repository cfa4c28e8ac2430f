"""A tool that returns its whole result itself."""

from typing import Annotated, Any

import pytest
from pydantic import BaseModel, Field

from mcp_stateless.content import CallToolResult
from mcp_stateless.definitions.output import MISSING, ToolResult
from mcp_stateless.definitions.tool import Tool
from mcp_stateless.errors import ToolError


class Point(BaseModel):
    x: int = Field(alias="ex", ge=0)
    note: str | None = None


def tool(returns: Any) -> Tool:
    def maker() -> Any: ...

    maker.__annotations__["return"] = returns
    return Tool.from_function(maker)


# B98
def test_an_error_result_has_content_only() -> None:
    made = tool(Annotated[CallToolResult, Point])
    assert made.output_schema is not None
    result = made.result(CallToolResult(["it broke"], structured_content={"other": 1}, is_error=True))
    assert result == ToolResult([{"type": "text", "text": "it broke"}], MISSING, is_error=True)


def test_a_whole_result_is_checked_against_the_schema_it_declares() -> None:
    made = tool(Annotated[CallToolResult, Point])
    result = made.result(CallToolResult([], structured_content={"ex": 1}, meta={"k": 1}))
    assert result.content == [{"type": "text", "text": '{"ex":1,"note":null}'}]
    assert result.structured == {"ex": 1, "note": None}
    assert result.meta == {"k": 1}
    with pytest.raises(ToolError, match="ex: missing"):
        made.result(CallToolResult(["text"], structured_content={}))
    with pytest.raises(ToolError, match="does not fit"):
        made.result(CallToolResult(["text"]))


def test_a_whole_result_without_a_schema_says_what_it_likes() -> None:
    made = tool(CallToolResult)
    assert made.output_schema is None
    assert made.result(CallToolResult(["a"])) == ToolResult([{"type": "text", "text": "a"}])
    assert made.result(CallToolResult([], structured_content=[1])).structured == [1]
