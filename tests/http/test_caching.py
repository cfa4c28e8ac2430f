"""How long answers may be kept at 2026-07-28, and by whom."""

from typing import Any

import pytest

from mcp_stateless import CacheHint, ConfigurationError, MCPServer, Settings
from tests.http.door import Door, Weight

LISTS = ("tools/list", "prompts/list", "resources/list", "resources/templates/list", "server/discover")


def server(**hints: Any) -> MCPServer:
    made = MCPServer("sample", "1", settings=Settings(list_ttl_ms=7000, resource_ttl_ms=5), **hints)

    @made.tool()
    def tool() -> str:
        return ""

    @made.prompt()
    def prompt() -> str:
        return ""

    @made.resource("a://plain")
    def plain() -> str:
        return ""

    @made.resource("a://fixed", cache_hint=CacheHint(86_400_000, "private"))
    def fixed() -> str:
        return ""

    @made.resource("a://one/{name}", cache_hint=CacheHint(60_000))
    def one(name: str) -> str:
        return name

    return made


def kept(answer: dict[str, Any]) -> tuple[int, str]:
    return answer["ttlMs"], answer["cacheScope"]


@pytest.mark.parametrize("method", LISTS)
def test_lists_are_kept_for_the_time_of_the_settings(weight: Weight, method: str) -> None:
    assert kept(Door(weight(server())).modern(method).result) == (7000, "public")


def test_an_author_says_for_each_list_how_long_and_by_whom_it_is_kept(weight: Weight) -> None:
    door = Door(weight(server(cache_hints={"tools/list": CacheHint(1, "private"), "resources/read": CacheHint(9)})))
    assert kept(door.modern("tools/list").result) == (1, "private")
    assert kept(door.modern("prompts/list").result) == (7000, "public")
    assert kept(door.modern("resources/read", {"uri": "a://plain"}).result) == (9, "public")


@pytest.mark.parametrize(
    ("uri", "expected"),
    [("a://plain", (5, "public")), ("a://fixed", (86_400_000, "private")), ("a://one/x", (60_000, "public"))],
)
def test_a_resource_has_its_own_time(weight: Weight, uri: str, expected: tuple[int, str]) -> None:
    assert kept(Door(weight(server())).modern("resources/read", {"uri": uri}).result) == expected


def test_what_is_answered_to_a_caller_with_a_token_is_not_shared(weight: Weight) -> None:
    door = Door(weight(server(cache_hints={"tools/list": CacheHint(1, "public")})))
    answer = door.modern("tools/list", headers={"authorization": "Bearer x"})
    assert kept(answer.result) == (1, "private")


def test_a_hint_for_what_is_never_kept_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="tools/call is none"):
        server(cache_hints={"tools/call": CacheHint(1)})


def test_a_time_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        CacheHint(-1)
