"""JSON Schema 2020-12 from pydantic types, in the shape that hosts understand.

Owns the differences from pydantic's own output: no automatic titles, no `$ref` except for recursion, and in argument
schemas `Optional[T]` written as T. Result schemas keep null: they describe data, and the data may be null.
"""

from collections.abc import Iterator, Mapping
from types import NoneType
from typing import Any, ClassVar, Final

from pydantic import TypeAdapter
from pydantic.json_schema import GenerateJsonSchema, JsonRef, JsonSchemaValue, JsonSchemaWarningKind
from pydantic_core import core_schema

_REFERENCE: Final = "#/$defs/"


class _HostSchema(GenerateJsonSchema):
    # A default that has no JSON form is left out, not warned about: the function still applies it.
    ignored_warning_kinds: ClassVar[set[JsonSchemaWarningKind]] = {"skipped-choice", "non-serializable-default"}  # type: ignore[misc]  # pydantic reads it from the class

    def encode_default(self, dft: Any) -> Any:
        # pydantic builds a type adapter for each default; most are JSON as they stand.
        return dft if type(dft) in (str, int, bool, NoneType) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        generated = super().generate_inner(schema)
        if schema["type"] == "enum":
            # An enum gets its title after `enum_schema`, in the definition that a reference names.
            named = "$ref" in generated and self.get_schema_from_definitions(JsonRef(generated["$ref"]))
            _untitled(named or generated, schema["cls"])
        return generated

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        return _untitled(super().model_schema(schema), schema["cls"])

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        return _untitled(super().dataclass_schema(schema), schema["cls"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        cls = schema.get("cls")
        generated = super().typed_dict_schema(schema)
        return generated if cls is None else _untitled(generated, cls)

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        # `discriminator` is OpenAPI's, and its mapping would point at definitions that are inlined.
        generated = super().tagged_union_schema(schema)
        generated.pop("discriminator", None)
        return generated


class _ArgumentSchema(_HostSchema):
    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        generated = super().default_schema(schema)
        if generated.get("default", ...) is None:
            del generated["default"]
        return generated


class _ResultSchema(_HostSchema):
    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        # Decimals are serialised by str(), whose exponent form the usual pattern refuses.
        return {"type": "string"}


def argument_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema of what `adapter` accepts, references still in place."""
    return adapter.json_schema(mode="validation", schema_generator=_ArgumentSchema)


def result_schema(adapter: TypeAdapter[Any]) -> dict[str, Any]:
    """The schema of what `adapter` serialises, references inlined."""
    return inline_references(adapter.json_schema(mode="serialization", schema_generator=_ResultSchema))


def inline_references(schema: Mapping[str, Any]) -> dict[str, Any]:
    """Replace each reference by what it names, except where a definition contains itself."""
    definitions: Mapping[str, Any] = schema.get("$defs", {})
    recursive = {name for name in definitions if name in _reachable(name, definitions)}

    def expand(node: Any) -> Any:
        if isinstance(node, list):
            return [expand(item) for item in node]
        if not isinstance(node, dict):
            return node
        name = _reference(node, definitions)
        if name is None or name in recursive:
            return {key: expand(value) for key, value in node.items()}
        beside = {key: expand(value) for key, value in node.items() if key != "$ref"}
        return {**expand(definitions[name]), **beside}

    root = {key: value for key, value in schema.items() if key != "$defs"}
    named = _reference(root, definitions)
    if named in recursive:
        # A root has to say its type: hosts look for "object" there.
        del root["$ref"]
        root = {**definitions[named], **root}
    expanded: dict[str, Any] = expand(root)
    kept = {name: expand(definitions[name]) for name in recursive & _reachable_from(root, definitions)}
    return {**expanded, "$defs": dict(sorted(kept.items()))} if kept else expanded


def _untitled(generated: JsonSchemaValue, cls: type) -> JsonSchemaValue:
    if generated.get("title") == cls.__name__:
        del generated["title"]
    return generated


def _reference(node: Mapping[str, Any], definitions: Mapping[str, Any]) -> str | None:
    target = node.get("$ref")
    if not isinstance(target, str) or not target.startswith(_REFERENCE):
        return None
    name = target.removeprefix(_REFERENCE)
    return name if name in definitions else None


def _references(node: Any, definitions: Mapping[str, Any]) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _references(item, definitions)
    elif isinstance(node, dict):
        name = _reference(node, definitions)
        if name is not None:
            yield name
        for value in node.values():
            yield from _references(value, definitions)


def _reachable_from(node: Any, definitions: Mapping[str, Any]) -> set[str]:
    seen: set[str] = set()
    waiting = list(_references(node, definitions))
    while waiting:
        name = waiting.pop()
        if name not in seen:
            seen.add(name)
            waiting.extend(_references(definitions[name], definitions))
    return seen


def _reachable(name: str, definitions: Mapping[str, Any]) -> set[str]:
    return _reachable_from(definitions[name], definitions)
