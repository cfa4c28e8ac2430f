"""Docstrings in the three common styles."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcp_stateless.definitions.docstring import parse_docstring

GOOGLE = """Add two numbers.

    Slowly.

    Args:
        a: the first
            number: a good one
        b (int, optional): the second
        **rest: others

    Returns:
        Their sum.
    """

SPHINX = """Add two numbers.

    Slowly.

    :param a: the first
        number: a good one
    :type a: int
    :param int b: the second
    :param rest: others
    :returns: Their sum.
    """

NUMPY = """Add two numbers.

    Slowly.

    Parameters
    ----------
    a : int
        the first
        number: a good one
    b : int, optional
        the second

    **rest
        others

    Returns
    -------
    int
        Their sum.
    """


@pytest.mark.parametrize("text", [GOOGLE, SPHINX, NUMPY])
def test_parameters_are_taken_out_of_the_description(text: str) -> None:
    parsed = parse_docstring(text)
    assert parsed.parameters == {"a": "the first number: a good one", "b": "the second", "rest": "others"}
    assert parsed.description.startswith("Add two numbers.\n\nSlowly.")
    assert "Their sum." in parsed.description
    assert "first" not in parsed.description


@pytest.mark.parametrize("text", [None, "", "  \n "])
def test_nothing_says_nothing(text: str | None) -> None:
    assert parse_docstring(text).description == ""


def test_a_word_that_looks_like_a_heading_stays_in_the_text() -> None:
    assert parse_docstring("Sum.\n\nArgs:\n\nnone").description == "Sum.\n\nArgs:\n\nnone"
    assert parse_docstring("Parameters are good.\nArgs: too").description == "Parameters are good.\nArgs: too"


@given(
    st.lists(
        st.sampled_from(["Args:", "    a: b", "Parameters", "---------", ":param x: y", "  z", "", "text", "a : b"])
    )
)
def test_any_text_is_read_to_its_end(lines: list[str]) -> None:
    text = "Start.\n" + "\n".join(lines) + "\nlast words"
    parsed = parse_docstring(text)
    assert "last words" in parsed.description or "last words" in " ".join(parsed.parameters.values())
    assert parsed.description.startswith("Start.")
