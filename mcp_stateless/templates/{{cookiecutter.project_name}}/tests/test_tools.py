"""The tools, called as a client calls them: through the Lambda handler, with real events."""

from mcp_stateless.testing import Client

from handler.app import lambda_handler


def test_the_server_offers_its_tools_with_descriptions() -> None:
    tools = Client(lambda_handler).list_tools()

    assert {"count_words", "compare_texts"} <= {tool["name"] for tool in tools}
    assert all(tool["description"] for tool in tools)


def test_words_are_counted_as_a_reader_would() -> None:
    result = Client(lambda_handler).call_tool("count_words", {"text": "Don't panic:\nit is a well-known text."})

    assert result.structured_content == {"characters": 37, "words": 7, "lines": 2, "longest_word": "well-known"}


def test_a_text_without_words_is_an_error_the_model_can_read() -> None:
    result = Client(lambda_handler).call_tool("count_words", {"text": "..."})

    assert result.is_error
    assert result.text == "There is no word in the text"


def test_a_difference_is_shown_line_by_line() -> None:
    result = Client(lambda_handler).call_tool("compare_texts", {"before": "one\ntwo", "after": "one\nthree"})

    assert result.text.splitlines()[-2:] == ["-two", "+three"]
