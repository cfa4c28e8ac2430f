"""Whatever an event holds: the handler returns a dict, and a response where a response is due."""

import json
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mangum.types import Receive, Scope, Send

from mcp_stateless.aws import LambdaHandler
from mcp_stateless.settings import Settings
from mcp_stateless.testing import events

SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4), max_leaves=12
)
BUILDERS: list[Callable[..., dict[str, Any]]] = [
    events.http_api_event,
    events.rest_api_event,
    events.function_url_event,
    events.alb_event,
]


async def app(scope: Scope, receive: Receive, send: Send) -> None:
    message = await receive()
    headers = [(b"x-path", scope["path"].encode()), (b"content-type", b"text/plain")]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await send({"type": "http.response.body", "body": message["body"]})


HANDLER = LambdaHandler(app, Settings())


@given(event=JSON, context=JSON)
@settings(max_examples=150, deadline=None)
def test_any_json_is_answered_with_a_dict(event: Any, context: Any) -> None:
    result = HANDLER(event, context)
    assert isinstance(result, dict)
    json.dumps(result, allow_nan=False).encode()


@given(data=st.data())
@settings(max_examples=300, deadline=None)
def test_an_event_with_any_part_replaced_is_answered_with_a_response_or_a_marker(data: st.DataObject) -> None:
    event = data.draw(st.sampled_from(BUILDERS))("POST", "/a/b", {"content-type": "text/plain"}, "body", query="a=1")
    for _ in range(data.draw(st.integers(1, 3))):
        parts = [part for part in (event, event["requestContext"]) if isinstance(part, dict) and part]
        part = data.draw(st.sampled_from(parts))
        part[data.draw(st.sampled_from(sorted(part)))] = data.draw(JSON)
    result = HANDLER(event, None)
    assert result.get("statusCode") in (200, 400) or result.keys() == {"ignored"}
    json.dumps(result, allow_nan=False).encode()
