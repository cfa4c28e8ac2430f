"""Questions to the client without a connection: what is asked, how it is answered, what is refused."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any, Literal

import pytest
from pydantic import BaseModel

from mcp_stateless import ConfigurationError, Context, MCPServer, Settings, ToolError
from mcp_stateless.questions import InputRequired, form
from tests.http.door import FORMS, Answer, Door, Weight

KEY = "a signing key of thirty-two bytes"
EVERYTHING: dict[str, Any] = {"elicitation": {"form": {}, "url": {}}, "sampling": {}, "roots": {}}
CLOCK = 1_800_000_000.0


class Name(BaseModel):
    name: str


class Size(BaseModel):
    size: Literal["S", "M"]
    count: int = 1


def made(version: str = "1", **settings: object) -> MCPServer:
    return MCPServer("sample", version, settings=Settings.model_validate({"signing_keys": (KEY,), **settings}))


class Caller:
    """A client of one tool; every request reaches a fresh environment of the same server."""

    def __init__(self, weight: Weight, build: Callable[[], MCPServer], name: str = "tool", **arguments: object) -> None:
        self.door = Door(lambda event, context: weight(build())(event, context))
        self.params: dict[str, Any] = {"name": name, "arguments": arguments}
        self.method = "tools/call"
        self.capabilities = EVERYTHING

    def start(self) -> Answer:
        return self.door.modern(self.method, self.params, capabilities=self.capabilities)

    def reply(self, asked: Answer, answers: object = None, **params: object) -> Answer:
        """The next round: the same call with the state of `asked` and these answers."""
        more: dict[str, Any] = {**self.params, "requestState": state(asked), **params}
        if answers is not None:
            more["inputResponses"] = answers
        return self.door.modern(self.method, more, capabilities=self.capabilities, request_id=2)


def state(asked: Answer) -> str:
    assert asked.result["resultType"] == "input_required", asked.json
    found: str = asked.result["requestState"]
    return found


def questions(asked: Answer) -> dict[str, Any]:
    state(asked)
    found: dict[str, Any] = asked.result["inputRequests"]
    return found


def accept(**content: object) -> dict[str, Any]:
    return {"action": "accept", "content": content}


def tool(fn: Callable[..., Any], **settings: Any) -> Callable[[], MCPServer]:
    """A server of one tool, named `tool`."""

    def build() -> MCPServer:
        server = made(**settings)
        server.tool("tool", description="Ask.")(fn)
        return server

    return build


async def named(ctx: Context[None]) -> str:
    answer = await ctx.elicit("What is your name?", Name, key="name")
    return f"{answer.action}:{answer.data.name if answer.action == 'accept' else ''}"


def named_blocking(ctx: Context[None]) -> str:
    answer = ctx.blocking.elicit("What is your name?", Name, key="name")
    return f"{answer.action}:{answer.data.name if answer.action == 'accept' else ''}"


# One question

BOTH_KINDS = pytest.mark.parametrize("fn", [named, named_blocking])


@BOTH_KINDS
def test_a_question_with_a_key_goes_out_under_that_key(weight: Weight, fn: Callable[..., Any]) -> None:
    asked = Caller(weight, tool(fn)).start()
    assert asked.status == 200
    assert questions(asked) == {
        "name": {
            "method": "elicitation/create",
            "params": {
                "mode": "form",
                "message": "What is your name?",
                "requestedSchema": {
                    "type": "object",
                    "properties": {"name": {"type": "string"}},
                    "required": ["name"],
                },
            },
        }
    }
    assert not {"content", "isError", "ttlMs", "cacheScope"} & set(asked.result)
    assert asked.result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "sample"


@BOTH_KINDS
@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (accept(name="Ada"), "accept:Ada"),
        ({"action": "decline"}, "decline:"),
        ({"action": "cancel"}, "cancel:"),
        ({"action": "decline", "content": {"name": "ignored"}}, "decline:"),
    ],
)
def test_accept_decline_and_cancel_are_values(
    weight: Weight, fn: Callable[..., Any], answer: dict[str, Any], text: str
) -> None:
    caller = Caller(weight, tool(fn))
    ended = caller.reply(caller.start(), {"name": answer})
    assert (ended.json["id"], ended.text, ended.result["resultType"]) == (2, text, "complete")


@BOTH_KINDS
@pytest.mark.parametrize(
    "bad",
    [
        {},
        {"action": "accept"},
        {"action": "accept", "content": None},
        {"action": "accept", "content": []},
        accept(),
        accept(name=5),
        accept(name=None),
        {"action": "maybe"},
        {"action": None},
        {"action": ["accept"], "content": {"name": "x"}},
    ],
)
def test_an_answer_that_does_not_fit_is_asked_again(
    weight: Weight, fn: Callable[..., Any], bad: dict[str, Any]
) -> None:
    caller = Caller(weight, tool(fn))
    asked = caller.start()
    again = caller.reply(asked, {"name": bad})
    assert questions(again) == questions(asked)
    assert caller.reply(again, {"name": accept(name="Ada")}).text == "accept:Ada"


@pytest.mark.parametrize("answers", [None, {}, {"other": accept(name="x")}, {"Name": {}, "": {}}])
def test_a_missing_answer_is_asked_again_and_unknown_keys_are_ignored(weight: Weight, answers: object) -> None:
    caller = Caller(weight, tool(named))
    asked = caller.start()
    again = caller.reply(asked, answers)
    assert questions(again) == questions(asked)
    assert caller.reply(again, {"name": accept(name="Ada"), "other": {}}).text == "accept:Ada"


@pytest.mark.parametrize("answers", [[], "x", 5, None, {"name": "x"}, {"name": None}, {"name": []}])
def test_answers_of_another_shape_are_invalid_params(weight: Weight, answers: object) -> None:
    caller = Caller(weight, tool(named))
    answer = caller.reply(caller.start(), inputResponses=answers)
    assert (answer.status, answer.error["code"]) == (200, -32602)


def test_answers_before_the_question_answer_nothing(weight: Weight) -> None:
    caller = Caller(weight, tool(named))
    params = {**caller.params, "inputResponses": {"name": accept(name="early")}}
    assert questions(caller.door.modern("tools/call", params, capabilities=EVERYTHING))


def test_other_people_do_not_see_what_a_tool_cannot_ask(weight: Weight) -> None:
    caller = Caller(weight, tool(named))
    legacy = caller.door.call("tool")
    assert legacy.result["isError"] is True
    assert "cannot ask" in legacy.text


# Without a key, and several at once


async def three_in_a_row(ctx: Context[None]) -> list[str]:
    names = []
    for _ in range(3):
        answer = await ctx.elicit("Next name?", Name)
        names.append(answer.data.name if answer.action == "accept" else "-")
    return names


def test_the_same_question_without_a_key_is_told_apart_by_its_occurrence(weight: Weight) -> None:
    caller = Caller(weight, tool(three_in_a_row))
    answer = caller.start()
    seen = []
    for name in ("a", "b", "c"):
        (key,) = questions(answer)
        seen.append(key)
        answer = caller.reply(answer, {key: accept(name=name)})
    assert json.loads(answer.result["content"][0]["text"] if len(answer.result["content"]) == 1 else "null") or True
    assert answer.result["structuredContent"] == ["a", "b", "c"]
    assert len(set(seen)) == 3


async def gathered(ctx: Context[None]) -> list[str]:
    answers = await asyncio.gather(
        ctx.elicit("First?", Name, key="first"), ctx.elicit("Second?", Name), ctx.list_roots(key="third")
    )
    return [type(answer).__name__ for answer in answers]


async def grouped(ctx: Context[None]) -> list[str]:
    async with asyncio.TaskGroup() as group:
        tasks = [
            group.create_task(ctx.elicit("First?", Name, key="first")),
            group.create_task(ctx.elicit("Second?", Name)),
            group.create_task(ctx.list_roots(key="third")),
        ]
    return [type(task.result()).__name__ for task in tasks]


@pytest.mark.parametrize("fn", [gathered, grouped])
@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("at_once", [False, True])
def test_parallel_questions_go_out_together_and_are_answered_in_any_order(
    weight: Weight, fn: Callable[..., Any], order: tuple[int, ...], at_once: bool
) -> None:
    caller = Caller(weight, tool(fn))
    asked = caller.start()
    keys = sorted(
        questions(asked), key=lambda key: ("first", "third").index(key) * 2 if key in ("first", "third") else 1
    )
    assert len(keys) == 3
    answers = [accept(name="x"), {"action": "decline"}, {"roots": [{"uri": "file:///x"}]}]
    answer = asked
    if at_once:
        answer = caller.reply(asked, {keys[n]: answers[n] for n in order})
    else:
        for left, n in zip((2, 1, 0), order, strict=True):
            answer = caller.reply(answer, {keys[n]: answers[n]})
            if left:
                assert len(questions(answer)) == left
    assert answer.result["structuredContent"] == ["AcceptedElicitation", "DeclinedElicitation", "list"]


@pytest.mark.parametrize("delays", [(0.0, 0.02), (0.02, 0.0)])
def test_questions_after_io_in_any_order_find_their_answers(weight: Weight, delays: tuple[float, float]) -> None:
    pauses = iter([delays, delays[::-1], delays, delays[::-1], delays])

    async def ask(ctx: Context[None], pause: float, key: str) -> str:
        await asyncio.sleep(pause)
        answer = await ctx.elicit(f"{key}?", Name)
        return answer.data.name if answer.action == "accept" else "-"

    async def unordered(ctx: Context[None]) -> list[str]:
        first, second = next(pauses)
        return list(await asyncio.gather(ask(ctx, first, "a"), ask(ctx, second, "b")))

    caller = Caller(weight, tool(unordered))
    answer = caller.start()
    for _ in range(3):
        if answer.result["resultType"] == "complete":
            break
        asked = questions(answer)
        replies = {key: accept(name=question["params"]["message"]) for key, question in asked.items()}
        answer = caller.reply(answer, replies)
    assert answer.result["structuredContent"] == ["a?", "b?"]


def test_a_question_that_comes_after_the_reply_is_asked_next_time_and_is_no_error(
    weight: Weight, caplog: pytest.LogCaptureFixture
) -> None:
    async def late(ctx: Context[None]) -> str:
        await asyncio.sleep(0.12)
        return (await ctx.elicit("Late?", Name, key="late")).action

    async def both(ctx: Context[None]) -> list[str]:
        answer, action = await asyncio.gather(ctx.elicit("Early?", Name, key="early"), late(ctx))
        return [answer.action, action]

    caller = Caller(weight, tool(both))
    early = caller.start()
    assert set(questions(early)) == {"early"}
    asked = caller.reply(early, {"early": accept(name="x")})
    assert set(questions(asked)) == {"late"}
    assert caller.reply(asked, {"late": accept(name="y")}).result["structuredContent"] == ["accept", "accept"]
    assert not [record for record in caplog.records if record.levelname == "ERROR"]


@pytest.mark.parametrize("inner", ["question", "step"])
@pytest.mark.parametrize("blocking", [False, True])
def test_a_step_holds_neither_questions_nor_steps(
    weight: Weight, inner: str, blocking: bool, caplog: pytest.LogCaptureFixture
) -> None:
    async def stepping(ctx: Context[None]) -> None:
        async def work() -> None:
            await (ctx.elicit("Inside?", Name) if inner == "question" else ctx.step("outer", list))

        await ctx.step("outer", work)

    def stepping_blocking(ctx: Context[None]) -> None:
        def work() -> None:
            ctx.blocking.elicit("Inside?", Name) if inner == "question" else ctx.blocking.step("outer", list)

        ctx.blocking.step("outer", work)

    answer = Caller(weight, tool(stepping_blocking if blocking else stepping)).start()
    assert answer.text == "The step 'outer' failed: RuntimeError"
    assert "cannot be inside a step" in caplog.text


def test_one_key_for_two_questions_is_the_authors_error(weight: Weight, caplog: pytest.LogCaptureFixture) -> None:
    async def twice(ctx: Context[None]) -> None:
        await asyncio.gather(ctx.elicit("One?", Name, key="k"), ctx.elicit("Two?", Name, key="k"))

    answer = Caller(weight, tool(twice)).start()
    assert answer.result["isError"] is True
    assert "'k' is used for two different questions" in caplog.text


# The other kinds of question


def test_every_kind_of_question_goes_out_and_comes_back(weight: Weight) -> None:
    async def everything(ctx: Context[None]) -> list[str]:
        opened = await ctx.elicit_url("Pay here", "https://example.com/pay", key="pay")
        sampled = await ctx.sample("Write a haiku", max_tokens=50, system_prompt="Be brief", key="haiku")
        roots = await ctx.list_roots(key="roots")
        raw = await ctx.elicit("Raw?", {"type": "object", "properties": {}}, key="raw")
        return [opened.action, sampled.text, sampled.model, roots[0].uri, str(roots[0].name), str(raw)]

    caller = Caller(weight, tool(everything))
    pay = caller.start()
    assert questions(pay) == {
        "pay": {
            "method": "elicitation/create",
            "params": {"mode": "url", "message": "Pay here", "url": "https://example.com/pay"},
        }
    }
    haiku = caller.reply(pay, {"pay": {"action": "accept"}})
    assert questions(haiku) == {
        "haiku": {
            "method": "sampling/createMessage",
            "params": {
                "messages": [{"role": "user", "content": {"type": "text", "text": "Write a haiku"}}],
                "maxTokens": 50,
                "systemPrompt": "Be brief",
            },
        }
    }
    sampled = {"role": "assistant", "content": {"type": "text", "text": "snow"}, "model": "m", "stopReason": "endTurn"}
    roots = caller.reply(haiku, {"haiku": sampled})
    assert questions(roots) == {"roots": {"method": "roots/list", "params": {}}}
    raw = caller.reply(roots, {"roots": {"roots": [{"uri": "file:///work", "name": "work"}]}})
    ended = caller.reply(raw, {"raw": accept()})
    assert ended.result["structuredContent"][:5] == ["accept", "snow", "m", "file:///work", "work"]


@pytest.mark.parametrize(
    "bad",
    [{}, {"role": "assistant"}, {"role": "assistant", "model": "m"}, {"role": 1, "model": "m", "content": []},
     {"role": "assistant", "model": "m", "content": "text"}],
)  # fmt: skip
def test_a_malformed_sample_is_asked_for_again(weight: Weight, bad: dict[str, Any]) -> None:
    async def sampling(ctx: Context[None]) -> str:
        return (await ctx.sample("Hello", key="s")).text

    caller = Caller(weight, tool(sampling))
    asked = caller.start()
    assert questions(caller.reply(asked, {"s": bad})) == questions(asked)


@pytest.mark.parametrize(
    "bad", [{}, {"roots": None}, {"roots": ["x"]}, {"roots": [{"name": "x"}]}, {"roots": [{"uri": 5}]}]
)
def test_malformed_roots_are_asked_for_again(weight: Weight, bad: dict[str, Any]) -> None:
    async def rooted(ctx: Context[None]) -> str:
        return str(len(await ctx.list_roots(key="r")))

    caller = Caller(weight, tool(rooted))
    asked = caller.start()
    assert questions(caller.reply(asked, {"r": bad})) == questions(asked)
    assert caller.reply(asked, {"r": {"roots": []}}).text == "0"


# Capabilities of this very request


@pytest.mark.parametrize(
    ("kind", "capabilities", "required"),
    [
        ("elicit", {}, {"elicitation": {"form": {}}}),
        ("elicit", {"elicitation": {"url": {}}}, {"elicitation": {"form": {}}}),
        ("elicit", {"elicitation": None}, {"elicitation": {"form": {}}}),
        ("elicit_url", {"elicitation": {}}, {"elicitation": {"url": {}}}),
        ("sample", {"elicitation": {}}, {"sampling": {}}),
        ("list_roots", {"sampling": {}}, {"roots": {}}),
    ],
)
def test_what_a_request_does_not_declare_is_not_asked(
    weight: Weight, kind: str, capabilities: dict[str, Any], required: dict[str, Any]
) -> None:
    async def ask(ctx: Context[None], kind: str) -> str:
        match kind:
            case "elicit":
                await ctx.elicit("?", Name)
            case "elicit_url":
                await ctx.elicit_url("?", "https://example.com")
            case "sample":
                await ctx.sample("?")
            case _:
                await ctx.list_roots()
        return "asked"

    caller = Caller(weight, tool(ask), kind=kind)
    caller.capabilities = capabilities
    answer = caller.start()
    assert (answer.status, answer.error["code"]) == (400, -32021)
    assert answer.error["data"] == {"requiredCapabilities": required}


@pytest.mark.parametrize("capabilities", [{"elicitation": {}}, {"elicitation": {"form": {}}}, EVERYTHING])
def test_forms_are_declared_in_either_spelling(weight: Weight, capabilities: dict[str, Any]) -> None:
    caller = Caller(weight, tool(named))
    caller.capabilities = capabilities
    assert questions(caller.start())


def test_the_next_question_is_held_to_the_request_that_asks_it(weight: Weight) -> None:
    async def two(ctx: Context[None]) -> None:
        await ctx.elicit("First?", Name, key="first")
        await ctx.sample("Second?", key="second")

    caller = Caller(weight, tool(two))
    asked = caller.start()
    caller.capabilities = FORMS
    assert caller.reply(asked, {"first": accept(name="x")}).error["code"] == -32021


def test_a_question_already_answered_needs_no_capability(weight: Weight) -> None:
    caller = Caller(weight, tool(named))
    asked = caller.start()
    caller.capabilities = {}
    assert caller.reply(asked, {"name": accept(name="Ada")}).text == "accept:Ada"


def test_a_tool_can_declare_what_it_needs(weight: Weight) -> None:
    def build() -> MCPServer:
        server = made()

        @server.tool("tool", requires=["elicitation", "sampling"])
        def needy() -> str:
            """Need much."""
            return "ran"

        return server

    caller = Caller(weight, build)
    assert caller.start().text == "ran"
    caller.capabilities = FORMS
    refused = caller.start()
    assert (refused.status, refused.error["code"]) == (400, -32021)
    required = refused.error["data"]["requiredCapabilities"]
    assert set(required) == {"elicitation", "sampling"}


# Prompts and resources


def asking_everywhere() -> MCPServer:
    server = made()

    @server.prompt()
    async def greet(ctx: Context[None]) -> str:
        """Greet."""
        return f"Hello {await named(ctx)}"

    @server.resource("greeting://{lang}")
    def greeting(lang: str, ctx: Context[None]) -> str:
        """Greet."""
        return f"{lang} {named_blocking(ctx)}"

    return server


@pytest.mark.parametrize(
    ("method", "params", "text"),
    [
        ("prompts/get", {"name": "greet"}, "Hello accept:Ada"),
        ("resources/read", {"uri": "greeting://en"}, "en accept:Ada"),
    ],
)
def test_prompts_and_resource_templates_ask_too(weight: Weight, method: str, params: dict[str, Any], text: str) -> None:
    caller = Caller(weight, asking_everywhere)
    caller.method, caller.params = method, params
    asked = caller.start()
    assert questions(asked)
    assert "ttlMs" not in asked.result
    ended = caller.reply(asked, {"name": accept(name="Ada")})
    assert text in ended.body.decode()
    assert ended.result["resultType"] == "complete"
    legacy = caller.door.legacy(method, params)
    assert (legacy.status, legacy.error["code"]) == (200, -32603)
    assert "cannot ask" in legacy.error["message"]


def test_a_completion_never_asks(weight: Weight) -> None:
    server = made()

    @server.prompt()
    def greet(name: str) -> str:
        """Greet."""
        return name

    @server.completion()
    async def complete(ref: Any, argument: Any, context: Any, ctx: Context[None]) -> list[str]:
        """Ask, though nobody may."""
        return [(await ctx.elicit("?", Name)).action]

    params = {"ref": {"type": "ref/prompt", "name": "greet"}, "argument": {"name": "name", "value": ""}}
    answer = Door(weight(server)).modern("completion/complete", params, capabilities=EVERYTHING)
    assert "error" in answer.json, answer.json


# The state


def tampered(token: str) -> list[str]:
    middle = len(token) // 2
    other = "A" if token[middle] != "A" else "B"
    return [token[:middle] + other + token[middle + 1 :], token[:-1], token + "A", token + "=", "", "x", "é", token * 2]


def test_a_state_that_does_not_hold_is_one_fixed_refusal_with_the_reason_in_the_log(
    weight: Weight, caplog: pytest.LogCaptureFixture
) -> None:
    caller = Caller(weight, tool(named))
    asked = caller.start()
    states: list[Any] = [*tampered(state(asked)), None, 5, [], {}]
    for token in states:
        caplog.clear()
        answer = caller.reply(asked, {"name": accept(name="Ada")}, requestState=token)
        assert answer.status == 200
        assert answer.error == {"code": -32602, "message": "Invalid params: the request state does not hold"}
        assert "request state refused" in caplog.text


def test_a_state_holds_for_its_own_call_only(weight: Weight) -> None:
    def build() -> MCPServer:
        server = made()

        @server.tool("tool")
        async def one(ctx: Context[None], amount: int = 0) -> str:
            """Ask."""
            return f"{amount} {await named(ctx)}"

        @server.tool()
        async def other(ctx: Context[None], amount: int = 0) -> str:
            """Ask."""
            return f"{amount} {await named(ctx)}"

        @server.prompt("tool")
        async def prompt(ctx: Context[None]) -> str:
            """Ask."""
            return await named(ctx)

        return server

    caller = Caller(weight, build, amount=1)
    asked = caller.start()
    answers = {"name": accept(name="Ada")}
    assert caller.reply(asked, answers).text == "1 accept:Ada"
    others: list[dict[str, Any]] = [{"arguments": {"amount": 2}}, {"arguments": {}}, {"name": "other"}, {"extra": 1}]
    for params in others:
        assert caller.reply(asked, answers, **params).error["code"] == -32602
    caller.method = "prompts/get"
    assert caller.reply(asked, answers).error["code"] == -32602


def test_the_meta_of_the_next_round_may_differ(weight: Weight) -> None:
    caller = Caller(weight, tool(named))
    asked = caller.start()
    params = {**caller.params, "requestState": state(asked), "inputResponses": {"name": accept(name="Ada")}}
    answer = caller.door.modern("tools/call", params, capabilities=FORMS, meta={"traceparent": "00-1", "other": 1})
    assert answer.text == "accept:Ada"


def test_a_state_expires(weight: Weight) -> None:
    now = [CLOCK]

    def build() -> MCPServer:
        settings = Settings.model_validate({"signing_keys": (KEY,), "state_ttl_s": 60})
        server = MCPServer("sample", "1", settings=settings, clock=lambda: now[0])
        server.tool("tool", description="Ask.")(named)
        return server

    caller = Caller(weight, build)
    asked = caller.start()
    now[0] = CLOCK + 59
    assert caller.reply(asked, {"name": accept(name="Ada")}).text == "accept:Ada"
    now[0] = CLOCK + 60
    assert caller.reply(asked, {"name": accept(name="Ada")}).error["code"] == -32602


def test_keys_are_exchanged_by_a_deploy(weight: Weight) -> None:
    old, new = KEY, "another signing key of 32 bytes or more"
    caller = Caller(weight, tool(named, signing_keys=(old,)))
    asked = caller.start()
    answers = {"name": accept(name="Ada")}
    rotated = Caller(weight, tool(named, signing_keys=(new, old)))
    assert rotated.reply(asked, answers).text == "accept:Ada"
    under_new = rotated.start()
    retired = Caller(weight, tool(named, signing_keys=(new,)))
    assert retired.reply(under_new, answers).text == "accept:Ada"
    assert retired.reply(asked, answers).error["code"] == -32602


def test_the_state_of_another_caller_does_not_hold() -> None:
    """Without authentication every caller is the same one; the binding itself is in the sealing tests."""
    from mcp_stateless.principal import ANONYMOUS, Principal

    keys = {ANONYMOUS.key, Principal("https://a", "b").key, Principal("https://a", "c").key, Principal("x", "b").key}
    assert len(keys) == 4


def test_a_state_too_large_to_travel_names_the_fix(weight: Weight) -> None:
    async def hoard(ctx: Context[None], size: int) -> str:
        await ctx.step("load", lambda: "a" * size)
        return await named(ctx)

    small = Caller(weight, tool(hoard, max_state_bytes=2000), size=1000)
    ended = small.reply(small.start(), {"name": accept(name="Ada")})
    assert ended.text == "accept:Ada"
    answer = Caller(weight, tool(hoard, max_state_bytes=2000), size=3000).start()
    assert answer.result["isError"] is True
    assert "2000" in answer.text
    assert "references to data" in answer.text


def test_on_lambda_a_server_that_asks_does_not_start_without_a_key(
    weight: Weight, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "function")
    with pytest.raises(ConfigurationError, match=r"tool asks .* MCP_SIGNING_KEYS .* python3 -c"):
        weight(tool(direct, signing_keys=())())
    weight(tool(direct)())
    assert Caller(weight, tool(not_asking, signing_keys=())).start().text == "nothing to ask"


def test_a_question_the_start_could_not_see_is_a_clear_error_without_a_key(
    weight: Weight, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_LAMBDA_FUNCTION_NAME", "function")

    def build() -> MCPServer:
        server = made(signing_keys=())
        server.tool("tool", description="Ask.", asks=False)(direct)
        return server

    answer = Caller(weight, build).start()
    assert answer.result["isError"] is True
    assert "not set up" in answer.text


async def direct(ctx: Context[None]) -> str:
    return (await ctx.elicit("Name?", Name)).action


# An explicit `InputRequired`


async def explicit(ctx: Context[None]) -> str | InputRequired:
    if ctx.request_state is None:
        return InputRequired({"name": form("Who?", Name)}, state={"round": 1})
    if ctx.request_state == {"round": 1}:
        return InputRequired(state={"round": 2, "got": ctx.input_responses["name"]})
    return json.dumps([ctx.request_state, dict(ctx.input_responses)])


def test_a_tool_may_keep_its_own_books(weight: Weight) -> None:
    caller = Caller(weight, tool(explicit))
    asked = caller.start()
    assert questions(asked)["name"]["params"]["message"] == "Who?"
    more = caller.reply(asked, {"name": accept(name="Ada")})
    assert questions(more) == {}
    ended = caller.reply(more)
    assert json.loads(ended.text) == [{"round": 2, "got": accept(name="Ada")}, {}]


def test_an_explicit_question_is_held_to_the_capabilities_too(weight: Weight) -> None:
    caller = Caller(weight, tool(explicit))
    caller.capabilities = {}
    assert caller.start().error["code"] == -32021
    legacy = caller.door.call("tool")
    assert legacy.result["isError"] is True
    assert "cannot ask" in legacy.text


# What goes wrong in a replay


def test_a_swallowed_stop_is_an_error_and_not_a_result(weight: Weight) -> None:
    async def swallow(ctx: Context[None]) -> str:
        try:
            await ctx.elicit("?", Name)
        except BaseException:
            return "went on"
        return "answered"

    answer = Caller(weight, tool(swallow)).start()
    assert answer.result["isError"] is True
    assert "tool went on after a question had ended its run" in answer.text


def test_a_stop_swallowed_before_an_explicit_question_is_an_error_too(weight: Weight) -> None:
    async def swallow(ctx: Context[None]) -> InputRequired:
        try:
            await ctx.elicit("?", Name)
        except BaseException:
            return InputRequired({"other": form("Other?", Name)})
        return InputRequired({})

    answer = Caller(weight, tool(swallow)).start()
    assert answer.result.get("isError") is True, answer.json


def test_except_exception_does_not_swallow_a_question(weight: Weight) -> None:
    async def careless(ctx: Context[None]) -> str:
        try:
            return await named(ctx)
        except Exception:
            return "swallowed"

    caller = Caller(weight, tool(careless))
    assert caller.reply(caller.start(), {"name": accept(name="Ada")}).text == "accept:Ada"


def test_a_clean_up_on_the_way_out_may_fail_on_its_own(weight: Weight) -> None:
    async def failing(ctx: Context[None]) -> str:
        try:
            return await named(ctx)
        finally:
            raise ToolError("could not clean up")

    answer = Caller(weight, tool(failing)).start()
    assert answer.text == "could not clean up"


def test_a_real_error_beside_a_question_weighs_more(weight: Weight) -> None:
    async def fail() -> None:
        raise ToolError("the other half failed")

    async def both(ctx: Context[None]) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(named(ctx))
            group.create_task(fail())

    answer = Caller(weight, tool(both)).start()
    assert answer.result["isError"] is True


def test_records_that_nothing_asked_for_are_an_error(weight: Weight, caplog: pytest.LogCaptureFixture) -> None:
    runs = []

    async def fickle(ctx: Context[None]) -> str:
        runs.append(1)
        return await named(ctx) if len(runs) == 1 else "did not ask"

    caller = Caller(weight, tool(fickle))
    answer = caller.reply(caller.start(), {"name": accept(name="Ada")})
    assert answer.result["isError"] is True
    assert "tool took another way" in answer.text
    assert "tool took another way" in caplog.text


def test_a_question_with_the_time_in_it_ends_in_an_error_that_says_so(weight: Weight) -> None:
    runs = []

    async def timed(ctx: Context[None]) -> str:
        runs.append(1)
        return (await ctx.elicit(f"It is {len(runs)} o'clock. Go on?", Name)).action

    caller = Caller(weight, tool(timed))
    answer = caller.start()
    for _ in range(10):
        if answer.result["resultType"] == "complete":
            break
        answer = caller.reply(answer, {key: accept(name="x") for key in questions(answer)})
    assert answer.result["isError"] is True
    assert "tool asks something else each time" in answer.text
    assert "time" in answer.text
    assert "key" in answer.text
    assert len(runs) <= 4


def test_with_a_key_the_text_may_differ_from_run_to_run(weight: Weight) -> None:
    runs = []

    async def timed(ctx: Context[None]) -> str:
        runs.append(1)
        return (await ctx.elicit(f"It is {len(runs)} o'clock. Go on?", Name, key="go")).action

    caller = Caller(weight, tool(timed))
    assert caller.reply(caller.start(), {"go": accept(name="x")}).text == "accept"


# A deploy in the middle


def versioned(version: str, fn: Callable[..., Any]) -> Callable[[], MCPServer]:
    def build() -> MCPServer:
        server = made(version)
        server.tool("tool", description="Ask.")(fn)
        return server

    return build


async def not_asking(ctx: Context[None]) -> str:
    return "nothing to ask"


def test_after_a_deploy_a_call_goes_on_while_its_records_match(weight: Weight) -> None:
    asked = Caller(weight, versioned("1", named)).start()
    after = Caller(weight, versioned("2", named))
    assert after.reply(asked, {"name": accept(name="Ada")}).text == "accept:Ada"


def test_after_a_deploy_that_changed_the_tool_the_call_starts_again(weight: Weight) -> None:
    asked = Caller(weight, versioned("1", named)).start()
    answer = Caller(weight, versioned("2", not_asking)).reply(asked, {"name": accept(name="Ada")})
    assert answer.result["isError"] is True
    assert "changed" in answer.text
    assert "start the call again" in answer.text


# Steps and what is stable


def test_a_step_runs_once_and_its_value_is_what_json_has(weight: Weight) -> None:
    runs: list[str] = []
    seen: list[object] = []

    def load(idempotency_key: str) -> dict[Any, Any]:
        runs.append(idempotency_key)
        return {"pair": (1, 2), 5: "five", "name": Name(name="x")}

    async def stepping(ctx: Context[None]) -> str:
        seen.append(await ctx.step("load", load))
        return await named(ctx)

    caller = Caller(weight, tool(stepping))
    assert caller.reply(caller.start(), {"name": accept(name="Ada")}).text == "accept:Ada"
    assert len(runs) == 1
    assert seen == [{"pair": [1, 2], "5": "five", "name": {"name": "x"}}] * 2


@pytest.mark.parametrize("kind", ["async", "sync", "lambda", "blocking"])
def test_steps_take_every_kind_of_function(weight: Weight, kind: str) -> None:
    runs: list[str] = []

    async def async_step() -> str:
        runs.append("async")
        return "value"

    def sync_step() -> str:
        runs.append("sync")
        return "value"

    async def stepping(ctx: Context[None]) -> str:
        fn: Callable[..., Any] = {"async": async_step, "sync": sync_step, "lambda": lambda: async_step()}[kind]
        value = await ctx.step("s", fn)
        return f"{value} {await named(ctx)}"

    def blocking(ctx: Context[None]) -> str:
        return f"{ctx.blocking.step('s', sync_step)} {named_blocking(ctx)}"

    caller = Caller(weight, tool(blocking if kind == "blocking" else stepping))
    assert caller.reply(caller.start(), {"name": accept(name="Ada")}).text == "value accept:Ada"
    assert len(runs) == 1


@pytest.mark.parametrize(("error", "text"), [(ToolError("sold out"), "sold out"), (ValueError("secret"), "ValueError")])
def test_a_failed_step_is_recorded_and_not_run_again(weight: Weight, error: Exception, text: str) -> None:
    runs = []

    def fail() -> None:
        runs.append(1)
        raise error

    async def stepping(ctx: Context[None]) -> str:
        try:
            await ctx.step("fail", fail)
        except ToolError as caught:
            told = f"{type(caught).__name__} {caught}"
        return f"{told} {await named(ctx)}"

    caller = Caller(weight, tool(stepping))
    ended = caller.reply(caller.start(), {"name": accept(name="Ada")})
    assert ended.text.startswith("StepError ")
    assert text in ended.text
    assert "secret" not in ended.text
    assert len(runs) == 1


def test_the_same_step_at_once_runs_once(weight: Weight) -> None:
    runs = []

    async def slow() -> int:
        runs.append(1)
        await asyncio.sleep(0.01)
        return len(runs)

    async def stepping(ctx: Context[None]) -> list[int]:
        return list(await asyncio.gather(*(ctx.step("slow", slow) for _ in range(3))))

    assert Caller(weight, tool(stepping)).start().result["structuredContent"] == [1, 1, 1]


@pytest.mark.parametrize("value", [float("nan"), object(), {"a": [object()]}])
def test_a_step_value_that_json_cannot_carry_is_an_error_that_names_the_step(weight: Weight, value: object) -> None:
    async def stepping(ctx: Context[None]) -> None:
        await ctx.step("odd", lambda: value)

    answer = Caller(weight, tool(stepping)).start()
    assert answer.result["isError"] is True
    assert "'odd'" in answer.text


def test_a_step_left_out_by_a_replay_is_an_error(weight: Weight) -> None:
    runs = []

    async def stepping(ctx: Context[None]) -> str:
        runs.append(1)
        if len(runs) == 1:
            await ctx.step("only once", lambda: 1)
        return await named(ctx)

    caller = Caller(weight, tool(stepping))
    assert "took another way" in caller.reply(caller.start(), {"name": accept(name="Ada")}).text


def test_steps_work_where_nothing_can_be_asked(weight: Weight) -> None:
    async def stepping(ctx: Context[None]) -> int:
        value: int = await ctx.step("s", lambda: 5)
        return value

    assert Caller(weight, tool(stepping)).door.call("tool").text == "5"


def test_what_a_call_is_stays_the_same_in_every_run_of_it(weight: Weight) -> None:
    seen: list[tuple[object, ...]] = []

    async def stable(ctx: Context[None]) -> str:
        seen.append((ctx.call_id, ctx.started_at, ctx.random.random(), ctx.random.randint(0, 10**9)))
        return await named(ctx)

    caller = Caller(weight, tool(stable))
    asked = caller.start()
    caller.reply(asked, {"name": {}})
    caller.reply(asked, {"name": accept(name="Ada")})
    assert len(set(seen)) == 1
    assert abs(seen[0][1].timestamp() - time.time()) < 60  # type: ignore[attr-defined]  # a datetime
    caller.start()
    assert len({entry[0] for entry in seen}) == 2
    assert len({entry[2] for entry in seen}) == 2


# Progress and logs


def test_progress_is_silent_until_a_replay_passes_what_is_recorded(weight: Weight) -> None:
    async def reporting(ctx: Context[None]) -> str:
        await ctx.report_progress(1)
        answer = await named(ctx)
        await ctx.report_progress(2)
        return answer

    caller = Caller(weight, tool(reporting))
    meta = {"progressToken": "t"}
    first = caller.door.modern("tools/call", caller.params, capabilities=FORMS, meta=meta).stream
    assert [message.get("params", {}).get("progress") for message in first] == [1, None]
    assert first[-1]["result"]["resultType"] == "input_required"
    params = {
        **caller.params,
        "requestState": first[-1]["result"]["requestState"],
        "inputResponses": {"name": accept(name="Ada")},
    }
    second = caller.door.modern("tools/call", params, capabilities=FORMS, meta=meta).stream
    assert [message.get("params", {}).get("progress") for message in second] == [2, None]
