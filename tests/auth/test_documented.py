"""The example files of the page on identity do what the page says."""

import hashlib
import runpy
from pathlib import Path
from typing import Any, Final

import pytest

from tests.http.door import Door

EXAMPLES: Final = Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture
def library(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The way in of a caller, by its claims."""
    monkeypatch.setenv("MCP_IDENTITY", "jwt_authorizer")
    handler = runpy.run_path(str(EXAMPLES / "identity.py"))["lambda_handler"]

    def caller(subject: str, **claims: str) -> Door:
        return Door(handler, authorizer={"jwt": {"claims": {"iss": "https://idp.example", "sub": subject, **claims}}})

    return caller


def test_callers_have_notes_of_their_own(library: Any) -> None:
    alice, bob = library("alice", scope="notes:write"), library("bob", scope="notes:write")
    assert alice.call("keep_note", {"text": "tea"}).result["structuredContent"] == {"result": 1}
    assert bob.call("my_notes").result["structuredContent"] == {"result": []}
    assert alice.call("my_notes").result["structuredContent"] == {"result": ["tea"]}


def test_who_may_write_may_read_and_not_the_other_way_round(library: Any) -> None:
    reader = library("alice", scope="notes:read")
    assert reader.call("my_notes").status == 200
    assert reader.call("keep_note", {"text": "tea"}).status == 403


def test_visitors_do_not_hear_of_what_is_for_the_staff(library: Any) -> None:
    visitor, staff = library("alice"), library("bob", team="staff")
    assert "close_library" not in visitor.legacy("tools/list").body.decode()
    assert visitor.call("close_library").error["message"] == "Unknown tool"
    assert staff.call("close_library").text == "closed"


def test_an_api_key_names_its_owner() -> None:
    names = runpy.run_path(str(EXAMPLES / "api_keys.py"))
    names["DIGESTS"][hashlib.sha256(b"key of carol").hexdigest()] = "carol"
    door = Door(names["lambda_handler"])
    assert door.call("who_am_i", headers={"authorization": "Bearer key of carol"}).text == "carol"
    assert door.call("who_am_i", headers={"authorization": "Bearer another"}).status == 401
    assert door.call("who_am_i").status == 401
