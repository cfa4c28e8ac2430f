"""The example's tools, resources, prompt and completion, as a client sees them behind the Lambda handler."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handler.app import lambda_handler
from handler.cells import infer, is_empty, parse
from handler.library import library
from mcp_stateless.testing import CallResult, Client, RequestError

SALES = """city,day,price,code,open
Bern,2026-03-01,12.50,0041,yes
Bern,2026-03-02,,0042,no
Oslo,2026-03-01,19.00,0047,yes
Oslo,2026-03-02,21.50,0047,yes
"""


def call(tool: str, **arguments: Any) -> CallResult:
    return Client(lambda_handler).call_tool(tool, arguments)


def profile(csv: str) -> dict[str, Any]:
    result = call("profile_csv", csv=csv)
    assert not result.is_error, result.text
    return {column["name"]: column for column in result.structured_content["columns"]}


def rows(**arguments: Any) -> list[list[str]]:
    result = call("query_csv", **{"csv": SALES, **arguments})
    assert not result.is_error, result.text
    found: list[list[str]] = result.structured_content["rows"]
    return found


def test_the_tool_without_arguments_comes_first_and_every_tool_is_described() -> None:
    tools = Client(lambda_handler).list_tools()

    names = ["list_documents", "search_documents", "profile_csv", "query_csv", "estimate_uncertainty"]
    assert [tool["name"] for tool in tools] == names
    assert tools[0]["inputSchema"].get("properties", {}) == {}
    assert all(tool["description"] and tool["annotations"]["readOnlyHint"] for tool in tools)


def test_each_column_gets_the_narrowest_kind_that_all_its_cells_fit() -> None:
    kinds = {name: column["kind"] for name, column in profile(SALES).items()}

    assert kinds == {"city": "text", "day": "date", "price": "number", "code": "text", "open": "boolean"}


def test_numbers_are_summarised_and_gaps_counted() -> None:
    price = profile(SALES)["price"]

    assert (price["filled"], price["empty"], price["distinct"]) == (3, 1, 3)
    assert price["numbers"] == {
        "minimum": 12.5,
        "first_quartile": 15.75,
        "median": 19.0,
        "third_quartile": 20.25,
        "maximum": 21.5,
        "mean": 17.66666667,
        "standard_deviation": 4.645786622,
    }


def test_a_single_number_has_no_deviation() -> None:
    numbers = profile("a\n7\n")["a"]["numbers"]

    assert numbers["standard_deviation"] is None
    assert numbers["first_quartile"] == numbers["maximum"] == 7


def test_dates_and_texts_have_a_first_and_a_last_and_the_most_frequent_values() -> None:
    columns = profile(SALES)

    assert (columns["day"]["first"], columns["day"]["last"]) == ("2026-03-01", "2026-03-02")
    assert columns["city"]["top"] == [{"value": "Bern", "count": 2}, {"value": "Oslo", "count": 2}]


@pytest.mark.parametrize(
    ("cells", "note"),
    [
        (["", "NA", "null"], "No cell has a value"),
        (["1", "", "", ""], "More than half of the cells are empty"),
        (["x", "x", "x"], "Every value is the same"),
        ([str(number) for number in range(20)], "may be an identifier"),
        (["1"] * 19 + ["n.a."], "19 of 20 values are numbers; these are not: 'n.a.'"),
    ],
)
def test_a_suspicious_column_is_noted(cells: list[str], note: str) -> None:
    csv = "a,b\n" + "".join(f"{cell},\n" for cell in cells)

    assert note in " ".join(profile(csv)["a"]["notes"])


def test_progress_is_reported_for_each_column() -> None:
    result = Client(lambda_handler).call_tool("profile_csv", {"csv": SALES}, progress_token="p")

    progress = [each["params"] for each in result.notifications]
    assert [each["message"] for each in progress] == [
        f"Column {name}" for name in ("city", "day", "price", "code", "open")
    ]
    assert all(each["total"] == 5 for each in progress)


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_the_delimiter_is_found_in_the_first_line(delimiter: str) -> None:
    result = call("profile_csv", csv=SALES.replace(",", delimiter))

    assert result.structured_content["delimiter"] == delimiter
    assert len(result.structured_content["columns"]) == 5


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        ("", "The CSV text is empty"),
        ("a,,c\n1,2,3\n", "Column 2 has no name"),
        ("a,b,a\n1,2,3\n", "'a' is used twice"),
        ("a,b\n1,2\n3,4,5\n", "Line 3 has 3 cells, the header 2"),
        ('a,b\n1,"2\n', "Line 2 is not CSV"),
    ],
)
def test_what_is_not_a_table_is_refused_with_the_place_to_mend(csv: str, said: str) -> None:
    result = call("profile_csv", csv=csv)

    assert result.is_error
    assert said in result.text


def test_quoted_cells_may_hold_delimiters_quotes_and_line_breaks() -> None:
    assert rows(csv='a,b\n"1,5","say ""yes""\nand go"\n') == [["1,5", 'say "yes"\nand go']]


@pytest.mark.parametrize(
    ("condition", "codes"),
    [
        ({"column": "price", "comparison": ">", "value": "9"}, ["0041", "0047", "0047"]),
        ({"column": "price", "comparison": "<=", "value": "19"}, ["0041", "0047"]),
        ({"column": "day", "comparison": "=", "value": "2026-03-02"}, ["0042", "0047"]),
        ({"column": "city", "comparison": "!=", "value": "Bern"}, ["0047", "0047"]),
        ({"column": "city", "comparison": "contains", "value": "ER"}, ["0041", "0042"]),
        ({"column": "price", "comparison": "is empty"}, ["0042"]),
        ({"column": "price", "comparison": "is not empty"}, ["0041", "0047", "0047"]),
        ({"column": "code", "value": "0041"}, ["0041"]),
    ],
)
def test_conditions_compare_by_the_kind_of_the_column(condition: dict[str, str], codes: list[str]) -> None:
    assert [row[3] for row in rows(where=[condition])] == codes


def test_rows_must_pass_all_conditions_and_are_counted_beyond_the_limit() -> None:
    result = call("query_csv", csv=SALES, where=[{"column": "open", "value": "yes"}], limit=1)

    assert len(result.structured_content["rows"]) == 1
    assert result.structured_content["matched"] == 3


@pytest.mark.parametrize(
    ("descending", "prices"), [(False, ["12.50", "19.00", "21.50", ""]), (True, ["21.50", "19.00", "12.50", ""])]
)
def test_rows_are_sorted_by_value_with_gaps_last(descending: bool, prices: list[str]) -> None:
    assert [row[2] for row in rows(sort_by="price", descending=descending)] == prices


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({"sort_by": "cost"}, "There is no column 'cost'. The columns are: city, day, price, code, open"),
        ({"where": [{"column": "price", "comparison": ">", "value": "cheap"}]}, "'price' holds number values"),
        ({"limit": 1000}, "limit"),
    ],
)
def test_a_question_that_cannot_be_answered_is_explained(arguments: dict[str, Any], said: str) -> None:
    result = call("query_csv", csv=SALES, **arguments)

    assert result.is_error
    assert said in result.text


@pytest.mark.parametrize("statistic", ["mean", "median", "standard deviation"])
def test_the_interval_holds_the_value_and_narrows_with_more_values(statistic: str) -> None:
    def estimate(count: int) -> dict[str, Any]:
        csv = "x\n" + "".join(f"{number * 37 % 101}\n" for number in range(count))
        result = call("estimate_uncertainty", csv=csv, column="x", statistic=statistic, resamples=300)
        assert not result.is_error, result.text
        found: dict[str, Any] = result.structured_content
        return found

    few, many = estimate(20), estimate(500)

    for each in (few, many):
        assert each["low"] <= each["value"] <= each["high"]
        assert each["resamples"] == 300
    assert many["high"] - many["low"] < few["high"] - few["low"]
    assert many["standard_error"] < few["standard_error"]


def test_the_interval_of_a_mean_is_as_wide_as_theory_says_and_the_same_each_time() -> None:
    csv = "x\n" + "".join(f"{number}\n" for number in range(100))
    first, second = (call("estimate_uncertainty", csv=csv, column="x").structured_content for _ in range(2))

    assert first == second
    assert first["value"] == 49.5
    # The standard deviation of 0..99 is 28.87; a tenth of it is the standard error of the mean of 100 values.
    assert first["standard_error"] == pytest.approx(2.887, rel=0.05)
    assert first["high"] - first["low"] == pytest.approx(2 * 1.96 * 2.887, rel=0.1)


def test_more_confidence_takes_a_wider_interval() -> None:
    csv = "x\n" + "".join(f"{number}\n" for number in range(100))
    narrow, wide = (
        call("estimate_uncertainty", csv=csv, column="x", confidence=confidence).structured_content
        for confidence in (0.5, 0.99)
    )

    assert wide["low"] < narrow["low"] < narrow["high"] < wide["high"]


def test_the_resamples_are_counted_while_they_are_drawn() -> None:
    arguments = {"csv": "x\n" + "1\n2\n" * 10, "column": "x", "resamples": 1005}
    result = Client(lambda_handler).call_tool("estimate_uncertainty", arguments, progress_token="p")

    progress = [each["params"]["progress"] for each in result.notifications]
    assert progress == [*range(100, 1001, 100), 1005]
    assert result.structured_content["resamples"] == 1005


@pytest.mark.parametrize(
    ("csv", "said"),
    [
        ("x\n1\n2\n3\n4\n", "'x' holds 4 numbers; an interval takes at least 5"),
        ("x\n1\n2\n3\n4\nfive\n", "'x' is not all numbers: 'five'"),
        ("y\n1\n", "There is no column 'x'"),
    ],
)
def test_a_column_without_an_interval_is_explained(csv: str, said: str) -> None:
    result = call("estimate_uncertainty", csv=csv, column="x")

    assert result.is_error
    assert said in result.text


def test_documents_are_listed_with_addresses_that_can_be_read() -> None:
    client = Client(lambda_handler)
    entries = client.call_tool("list_documents").structured_content["result"]

    assert [entry["name"] for entry in entries] == sorted(library().documents)
    for entry in entries:
        [content] = client.read_resource(entry["uri"])
        assert content["text"].startswith(f"# {entry['title']}\n")
        assert content["mimeType"] == "text/markdown"


def test_the_index_names_every_document() -> None:
    [content] = Client(lambda_handler).read_resource("docs://index")

    assert all(f"(docs://{name})" in content["text"] for name in library().documents)


@pytest.mark.parametrize("name", ["nothing", "..%2Fapp", "index%00"])
def test_an_unknown_document_is_not_found(name: str) -> None:
    with pytest.raises(RequestError) as caught:
        Client(lambda_handler).read_resource(f"docs://{name}")

    assert caught.value.code == -32002


@pytest.mark.parametrize(
    ("query", "heading"),
    [
        ("leading zeros in postcodes", "Codes that look like numbers"),
        ("what do outliers do to the quartile", "Quartiles and outliers"),
        ("decimal comma", "Delimiters and decimal commas"),
    ],
)
def test_the_passage_that_says_most_about_a_question_comes_first(query: str, heading: str) -> None:
    passages = call("search_documents", query=query).structured_content["result"]

    assert passages[0]["heading"] == heading
    assert [each["score"] for each in passages] == sorted((each["score"] for each in passages), reverse=True)


def test_a_search_for_unknown_words_finds_nothing() -> None:
    assert call("search_documents", query="xylophone").structured_content == {"result": []}


def test_the_prompt_carries_the_data_and_the_question() -> None:
    prompt = Client(lambda_handler).get_prompt("review_dataset", {"csv": SALES, "question": "Where is it dearer?"})

    text = prompt["messages"][0]["content"]["text"]
    assert "Where is it dearer?" in text
    assert SALES in text


def test_names_of_documents_are_completed() -> None:
    ref = {"type": "ref/resource", "uri": "docs://{name}"}

    assert Client(lambda_handler).complete(ref, "name", "C")["values"] == ["comparing-groups", "csv-pitfalls"]


@given(st.lists(st.text(max_size=12), max_size=8))
def test_every_cell_can_be_read_as_the_kind_that_was_inferred(cells: list[str]) -> None:
    kind = infer(cells)

    assert all(is_empty(cell) or parse(cell, kind) is not None for cell in cells)


@given(st.text(max_size=200))
def test_any_text_is_profiled_or_refused_but_never_breaks(csv: str) -> None:
    result = call("profile_csv", csv=csv)

    assert result.is_error or json.loads(result.text) == result.structured_content
    assert "error id" not in result.text.lower()
