"""Cursors of lists: whatever is sent as one, the answer is a page or one fixed refusal."""

import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from mcp_stateless import MCPServer, Settings
from tests.http.door import Door

NAMES = [f"tool-{n}" for n in range(7)]


def nothing() -> None:
    return None


def made(page_size: int) -> Door:
    server = MCPServer("sample", settings=Settings(page_size=page_size))
    for name in NAMES:
        server.tool(name, description="Item.")(nothing)
    return Door(server.lambda_handler())


DOOR = made(3)

CURSORS = st.one_of(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=30),
    st.lists(st.text(max_size=3), max_size=2),
    st.binary(max_size=30).map(lambda raw: base64.urlsafe_b64encode(raw).decode()),
    st.sampled_from([*NAMES, "none", ""]).map(lambda name: base64.urlsafe_b64encode(f"tool:{name}".encode()).decode()),
)


@given(CURSORS)
def test_a_cursor_is_one_that_was_given_or_refused(cursor: Any) -> None:
    answer = DOOR.legacy("tools/list", {"cursor": cursor})
    assert answer.status == 200
    if "error" in answer.json:
        assert answer.error == {"code": -32602, "message": "Invalid cursor"}
    else:
        names = [tool["name"] for tool in answer.result["tools"]]
        start = NAMES.index(names[0])
        assert names == NAMES[start : start + 3]
        assert start > 0


@given(st.integers(1, 9), st.integers(1, 9))
def test_a_walk_may_change_environments_with_every_page(first: int, second: int) -> None:
    doors = [made(first), made(second)]
    seen: list[str] = []
    params: dict[str, Any] = {}
    for turn in range(len(NAMES) + 1):
        result = doors[turn % 2].legacy("tools/list", params).result
        seen += [tool["name"] for tool in result["tools"]]
        if "nextCursor" not in result:
            break
        params = {"cursor": result["nextCursor"]}
    assert seen == NAMES
