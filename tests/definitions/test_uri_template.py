"""Which URIs a template takes, and which values come out of them."""

from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_stateless.definitions.uri_template import UriTemplate
from mcp_stateless.errors import ConfigurationError


@pytest.mark.parametrize(
    ("template", "uri", "values"),
    [
        ("test://template/{id}/data", "test://template/123/data", {"id": "123"}),
        ("a://{x}", "a://b%20c", {"x": "b c"}),
        ("a://{x}", "a://%E6%97%A5", {"x": "日"}),
        ("a://{x}.{y}", "a://b.c", {"x": "b", "y": "c"}),
        ("a://{x}", "a://...", {"x": "..."}),
        ("file:///{+path}", "file:///a/b.txt", {"path": "a/b.txt"}),
        ("a://{owner}/tree/{+path}/end", "a://me/tree/x/y/end", {"owner": "me", "path": "x/y"}),
        ("a://h{/one}", "a://h/x", {"one": "x"}),
        ("a://h{/rest*}", "a://h/x/y", {"rest": "x/y"}),
        ("a://{x}{/y}", "a://b/c", {"x": "b", "y": "c"}),
        ("a://s{?q,n}", "a://s", {}),
        ("a://s{?q,n}", "a://s?", {}),
        ("a://s{?q,n}", "a://s?n=1&q=a%2Fb", {"n": "1", "q": "a/b"}),
        ("a://s{?q}", "a://s?q=1&q=2&other=3&q", {"q": "1"}),
        ("a://{x}{?q}", "a://b?q=c=d", {"x": "b", "q": "c=d"}),
        ("a://static", "a://static", {}),
    ],
)
def test_values_come_out_decoded(template: str, uri: str, values: dict[str, str]) -> None:
    assert UriTemplate.parse(template).match(uri) == values


@pytest.mark.parametrize(
    ("template", "uri"),
    [
        ("a://{x}", "a://"),
        ("a://{x}", "a://b/c"),
        ("a://{x}", "a://b%2Fc"),
        ("a://{x}", "a://b%5Cc"),
        ("a://{x}", "a://.."),
        ("a://{x}", "a://%2e%2e"),
        ("a://{x}", "a://b%00"),
        ("a://{x}", "a://%ff"),
        ("a://{x}", "a://%zz"),
        ("a://{x}", "a://b?c"),
        ("a://{x}", "A://b"),
        ("a://{x}.txt", "a://bxtxt"),
        ("a://{x}/c", "a://b/c\n"),
        ("file:///{+path}", "file:///a/../b"),
        ("file:///{+path}", "file:///a/%2e%2e/b"),
        ("file:///{+path}", "file:///a%2f..%2fb"),
        ("file:///{+path}", "file:////etc/passwd"),
        ("file:///{+path}", "file:///%2Fetc/passwd"),
        ("file:///{+path}", "file:///c:/windows"),
        ("file:///{+path}", "file:///a%5C..%5Cb"),
        ("file:///{+path}", "file:///a%00"),
        ("a://h{/rest*}", "a://h/../x"),
        ("a://s{?q}", "a://s?q=%00"),
        ("a://s{?q}", "a://s?q=%ff"),
    ],
)
def test_foreign_and_dangerous_uris_do_not_match(template: str, uri: str) -> None:
    assert UriTemplate.parse(template).match(uri) is None


@pytest.mark.parametrize(
    ("template", "position", "what"),
    [
        ("a://{#x}", 4, "can be matched"),
        ("a://{.x}", 4, "can be matched"),
        ("a://b{;x}", 5, "can be matched"),
        ("a://b{&x}", 5, "can be matched"),
        ("a://b{+x*}", 5, "can be matched"),
        ("a://b{x*}", 5, "can be matched"),
        ("a://b{x:3}", 5, "can be matched"),
        ("a://b{x,y}", 5, "not one variable"),
        ("a://b{}", 5, "not one variable"),
        ("a://b{x y}", 5, "not one variable"),
        ("a://{x", 4, "a brace without"),
        ("a://x}", 5, "a brace without"),
        ("a://{x}/{x}", 8, "second time"),
        ("a://{x}{y}", 7, "nothing separates"),
        ("a://{+x}{/y}", 8, "nothing separates"),
        ("a://{+x}/b{/y*}", 10, "second variable for the rest"),
        ("a://b{?q}/c", 9, "text after the query"),
        ("a://b{?q}{?r}", 9, "after the query"),
    ],
)
def test_what_has_no_one_answer_is_refused_with_its_position(template: str, position: int, what: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"position {position}, .*{what}"):
        UriTemplate.parse(template)


SEGMENT = st.text(min_size=1).filter(lambda text: text not in (".", "..") and not set(text) & set("/\\\0"))


@given(SEGMENT, st.lists(SEGMENT, min_size=1, max_size=4), st.text().filter(lambda text: "\0" not in text))
def test_expanded_values_come_back(one: str, path: list[str], query: str) -> None:
    if len(path[0]) > 1 and path[0][1] == ":":
        path = ["dir", *path]
    encoded = "/".join(quote(segment, safe="") for segment in path)
    uri = f"a://{quote(one, safe='')}/x/{encoded}?q={quote(query, safe='')}"
    template = UriTemplate.parse("a://{one}/x/{+path}{?q}")
    assert template.match(uri) == {"one": one, "path": "/".join(path), "q": query}


@given(st.text())
def test_no_uri_gives_a_value_that_leaves_its_directory(tail: str) -> None:
    values = UriTemplate.parse("a://{one}/{+path}").match(f"a://{tail}") or {}
    assert "/" not in values.get("one", "")
    assert ".." not in values.get("path", "").split("/")
    assert not values.get("path", "").startswith("/")
