"""Questions to the client without a connection: what is asked, and how it is answered."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from mcp_stateless import Context, MCPServer
from mcp_stateless.questions import InputRequired, form
from tests.http.caller import (
    EVERYTHING,
    Caller,
    Name,
    accept,
    made,
    named,
    named_blocking,
    questions,
    tool,
)
from tests.http.door import FORMS, Door, Weight

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
