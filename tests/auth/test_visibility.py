"""What a caller sees: lists and calls agree, and what it does not see is answered like what is not there."""

from typing import Any, Final

import pytest

from mcp_stateless import Context, MCPServer, Principal, Settings
from tests.http.door import Answer, Door

SECRET: Final = "secret"


def visible(caller: Principal, definition: Any) -> bool:
    return SECRET not in definition.name or caller.subject == "admin"


def made(**options: Any) -> MCPServer:
    server = MCPServer("seen", "1", visible=visible, settings=Settings(identity="jwt_authorizer"), **options)
    for name in ("open", "secret"):
        server.tool(name, description="Do it.", scopes=["x"] if name == SECRET else [])(lambda: "done")
        server.prompt(name, description="Say it.")(lambda topic="": "said")
        server.resource(f"file://{name}", name=name)(lambda: "read")
        server.resource(f"{name}://{{part}}", name=f"{name} part")(lambda part: part)

    @server.completion()
    def complete(ref: Any, argument: Any, context: Any) -> list[str]:
        return ["a"]

    return server


def door(subject: str, scope: str = "x", server: MCPServer | None = None) -> Door:
    claims = {"iss": "i", "sub": subject, "scope": scope}
    return Door((server or made()).lambda_handler(), authorizer={"jwt": {"claims": claims}})


LISTS: Final = {
    "tools/list": "tools",
    "prompts/list": "prompts",
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
}
USES: Final[list[tuple[str, dict[str, Any], dict[str, Any]]]] = [
    ("tools/call", {"name": "secret"}, {"name": "nosuch"}),
    ("prompts/get", {"name": "secret"}, {"name": "nosuch"}),
    ("resources/read", {"uri": "file://secret"}, {"uri": "file://nosuch"}),
    ("resources/read", {"uri": "secret://a"}, {"uri": "nosuch://a"}),
    (
        "completion/complete",
        {"ref": {"type": "ref/prompt", "name": "secret"}, "argument": {"name": "topic", "value": ""}},
        {"ref": {"type": "ref/prompt", "name": "nosuch"}, "argument": {"name": "topic", "value": ""}},
    ),
    (
        "completion/complete",
        {"ref": {"type": "ref/resource", "uri": "secret://{part}"}, "argument": {"name": "part", "value": ""}},
        {"ref": {"type": "ref/resource", "uri": "nosuch://{part}"}, "argument": {"name": "part", "value": ""}},
    ),
]


@pytest.mark.parametrize("method", LISTS)
def test_lists_hold_what_the_caller_sees(method: str) -> None:
    for send in (door("bob").legacy, door("bob").modern):
        assert SECRET not in send(method).body.decode()
    assert len(door("admin").modern(method).result[LISTS[method]]) == 2


# B38, D11
@pytest.mark.parametrize("method", [*LISTS, "server/discover", "resources/read"])
@pytest.mark.parametrize("subject", ["bob", "admin"])
def test_nothing_that_depends_on_the_caller_may_be_shared(method: str, subject: str) -> None:
    params = {"uri": "file://open"} if method == "resources/read" else {}
    assert door(subject).modern(method, params).result["cacheScope"] == "private"


def test_lists_of_an_open_server_are_private_too_where_a_caller_is_told_apart() -> None:
    server = MCPServer("open", "1", visible=visible, settings=Settings())
    server.tool("open", description="Do it.")(lambda: "done")
    assert Door(server.lambda_handler()).modern("tools/list").result["cacheScope"] == "private"
    plain = MCPServer("open", "1", settings=Settings())
    plain.tool("open", description="Do it.")(lambda: "done")
    assert Door(plain.lambda_handler()).modern("tools/list").result["cacheScope"] == "public"


def without_names(answer: Answer) -> tuple[int, str]:
    return answer.status, answer.body.decode().replace("secret", "nosuch")


@pytest.mark.parametrize(("method", "hidden", "unknown"), USES)
def test_what_is_hidden_is_answered_like_what_is_not_there(
    method: str, hidden: dict[str, Any], unknown: dict[str, Any]
) -> None:
    bob = door("bob")
    for send in (bob.legacy, bob.modern):
        refused = send(method, hidden)
        assert "error" in refused.json
        assert without_names(refused) == without_names(send(method, unknown))
    admin = door("admin")
    assert admin.modern(method, hidden).status == 200
    assert "result" in admin.legacy(method, hidden).json


def test_a_hidden_tool_is_not_given_away_by_its_scopes() -> None:
    refused = door("bob", scope="").modern("tools/call", {"name": "secret"})
    assert refused.status != 403
    assert door("admin", scope="").modern("tools/call", {"name": "secret"}).status == 403


def test_a_caller_that_sees_no_tool_is_offered_none() -> None:
    server = MCPServer("none", "1", visible=lambda caller, item: False, settings=Settings(identity="jwt_authorizer"))
    server.tool("open", description="Do it.")(lambda: "done")
    bob = door("bob", server=server)
    assert bob.modern("server/discover").result["capabilities"] == {}
    assert bob.modern("tools/call", {"name": "open"}).error == bob.modern("tools/list").error


def test_pages_hold_what_the_caller_sees() -> None:
    server = MCPServer("pages", "1", visible=visible, settings=Settings(identity="jwt_authorizer", page_size=1))
    for name in ("a", "secret", "b"):
        server.tool(name, description="Do it.")(lambda: "done")
    bob, params = door("bob", server=server), dict[str, Any]()
    names: list[str] = []
    for _ in range(5):
        page = bob.legacy("tools/list", params).result
        names += [tool["name"] for tool in page["tools"]]
        if "nextCursor" not in page:
            break
        params = {"cursor": page["nextCursor"]}
    assert names == ["a", "b"]
    cursor = (
        door("admin", server=server)
        .legacy("tools/list", {"cursor": door("admin", server=server).legacy("tools/list").result["nextCursor"]})
        .result["nextCursor"]
    )
    made_up = bob.legacy("tools/list", {"cursor": "bm8="})
    assert bob.legacy("tools/list", {"cursor": cursor}).json == made_up.json


def test_the_hook_is_told_every_caller_and_definition() -> None:
    seen: set[tuple[str, str]] = set()

    def hook(caller: Principal, definition: Any) -> bool:
        seen.add((caller.subject, definition.name))
        return True

    server = MCPServer("told", "1", visible=hook, settings=Settings(identity="jwt_authorizer"))

    @server.tool()
    def name(ctx: Context[None]) -> str:
        """Say the caller's name."""
        return ctx.principal.subject

    assert door("alice", server=server).call("name").text == "alice"
    assert door("bob", server=server).call("name").text == "bob"
    assert seen == {("alice", "name"), ("bob", "name")}


def test_a_hook_that_fails_shows_nothing(caplog: pytest.LogCaptureFixture) -> None:
    def hook(caller: Principal, definition: Any) -> bool:
        raise KeyError(SECRET)

    server = MCPServer("fails", "1", visible=hook, settings=Settings(identity="jwt_authorizer"))
    server.tool("open", description="Do it.")(lambda: "done")
    answer = door("bob", server=server).legacy("tools/list")
    assert answer.status == 500
    assert answer.json["error"] == {"code": -32603, "message": "Internal error"}
    assert SECRET in caplog.text
