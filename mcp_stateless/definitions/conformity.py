"""Whether JSON data fits a schema that this package generated.

A value's own type is no proof: a dataclass takes what it is given, a model can be changed after it was checked, a
serializer may return anything. So what goes out is checked against what was promised. The check is compiled once, by
pydantic-core; keywords that pydantic does not generate are not looked at, so it is no general JSON Schema validator.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic_core import CoreSchema, SchemaError, SchemaValidator, core_schema

_Engine: TypeAlias = Literal["rust-regex", "python-re"]

_STRING: Final = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_NUMBER: Final = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
_ARRAY: Final = {"minItems": "min_length", "maxItems": "max_length"}


def conformity_check(schema: Mapping[str, Any]) -> SchemaValidator:
    """A validator whose `validate_python(data)` raises `ValidationError` where `data` does not fit `schema`."""
    try:
        return SchemaValidator(_rooted(schema, "rust-regex"))
    except SchemaError:
        # Patterns with a look-ahead, of models that chose Python's own engine.
        return SchemaValidator(_rooted(schema, "python-re"))


def _rooted(schema: Mapping[str, Any], engine: _Engine) -> CoreSchema:
    compiler = _Compiler(engine, schema.get("$defs", {}))
    definitions = [{**compiler.compile(body), "ref": name} for name, body in compiler.definitions.items()]
    return core_schema.definitions_schema(compiler.compile(schema), definitions)  # type: ignore[arg-type]  # with a ref


class _Compiler:
    def __init__(self, engine: _Engine, definitions: Mapping[str, Any]) -> None:
        self.definitions = definitions
        self._by_type: Mapping[str, Callable[[Mapping[str, Any]], CoreSchema]] = {
            "string": lambda node: core_schema.str_schema(strict=True, regex_engine=engine, **_kept(node, _STRING)),
            "integer": lambda node: core_schema.int_schema(strict=True, **_kept(node, _NUMBER)),
            "number": lambda node: core_schema.float_schema(strict=True, **_kept(node, _NUMBER)),
            "boolean": lambda node: core_schema.bool_schema(strict=True),
            "null": lambda node: core_schema.none_schema(),
            "array": self._array,
            "object": self._object,
        }

    def compile(self, node: Any) -> CoreSchema:
        if not isinstance(node, Mapping):
            return core_schema.any_schema()
        if "$ref" in node:
            name = str(node["$ref"]).removeprefix("#/$defs/")
            known = name in self.definitions
            return core_schema.definition_reference_schema(name) if known else core_schema.any_schema()
        if "const" in node or "enum" in node:
            return core_schema.literal_schema([node["const"]] if "const" in node else list(node["enum"]))
        branches = node.get("anyOf") or node.get("oneOf")
        kind = node.get("type", "")
        if isinstance(kind, list):
            branches = [{**node, "type": each} for each in kind]
        if branches:
            return core_schema.union_schema([self.compile(branch) for branch in branches], mode="left_to_right")
        compile_type = self._by_type.get(kind)
        return core_schema.any_schema() if compile_type is None else compile_type(node)

    def _array(self, node: Mapping[str, Any]) -> CoreSchema:
        bounds = _kept(node, _ARRAY)
        if "prefixItems" not in node:
            return core_schema.list_schema(self.compile(node.get("items")), strict=True, **bounds)
        # Tuples leave as lists: their length is checked here, their items by the type that made them.
        return core_schema.list_schema(strict=True, **bounds)

    def _object(self, node: Mapping[str, Any]) -> CoreSchema:
        required, more = node.get("required", ()), node.get("additionalProperties", True)
        fields = {
            name: core_schema.typed_dict_field(self.compile(body), required=name in required)
            for name, body in node.get("properties", {}).items()
        }
        if more is False:
            return core_schema.typed_dict_schema(fields, extra_behavior="forbid")
        return core_schema.typed_dict_schema(fields, extra_behavior="allow", extras_schema=self.compile(more))


def _kept(node: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {name: node[keyword] for keyword, name in names.items() if keyword in node}
