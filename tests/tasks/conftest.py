"""The stores that a call may lie in, those of the tests of calls."""

from tests.calls.conftest import dynamodb, engine, store, table

__all__ = ["dynamodb", "engine", "store", "table"]
