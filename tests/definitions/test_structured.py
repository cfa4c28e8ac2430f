"""Structured content where a revision wants an object."""

from mcp_stateless.definitions.structured import object_output_schema, object_structured


def test_wrapping_keeps_definitions_at_the_root() -> None:
    schema = {"type": "array", "items": {"$ref": "#/$defs/Node"}, "$defs": {"Node": {"type": "object"}}}
    wrapped = object_output_schema(schema)
    assert wrapped == {
        "type": "object",
        "properties": {"result": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        "required": ["result"],
        "$defs": {"Node": {"type": "object"}},
    }
    assert object_structured(schema, []) == {"result": []}


def test_objects_are_not_wrapped_unless_the_schema_allows_others() -> None:
    assert object_structured({"type": "object"}, {"a": 1}) == {"a": 1}
    assert object_structured({"anyOf": [{"type": "object"}, {"type": "null"}]}, {"a": 1}) == {"result": {"a": 1}}
    assert object_structured(None, {"a": 1}) == {"a": 1}
    assert object_structured(None, [1]) == {"result": [1]}
