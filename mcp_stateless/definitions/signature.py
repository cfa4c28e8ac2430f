"""A function's parameters as JSON Schema, and the arguments of a call as keyword arguments.

Arguments are decoded JSON and are read as pydantic reads JSON in its lax mode, with these differences:

- `5.0` and `"5"` are integers, but a boolean is never a number;
- a string for a parameter that takes no string is tried as JSON, since some hosts send every argument as a string;
  where the type takes strings, the string stays as it is;
- null for a parameter with a default means the default, unless the type takes null;
- an argument the function does not have is an error, except for those that a host adds by itself. The schema does not
  say `additionalProperties: false`, so a host that adds arguments of its own does not contradict it.
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, NoReturn

from pydantic import TypeAdapter, ValidationError
from pydantic_core import ArgsKwargs, ErrorDetails

from mcp_stateless.context import Context
from mcp_stateless.definitions.docstring import Docstring, parse_docstring
from mcp_stateless.definitions.json_schema import argument_schema, inline_references
from mcp_stateless.definitions.parameters import EMPTY, Parameters, read_parameters
from mcp_stateless.definitions.problems import UNUSABLE_TYPE, describe, first_sentence, located, shortened
from mcp_stateless.definitions.raw_schema import raw_schema
from mcp_stateless.errors import ArgumentError, ConfigurationError

HOST_ARGUMENTS: Final = frozenset({"wait_for_previous"})
"""Arguments that a host (Gemini CLI) adds to calls on its own; dropped where the tool has no such parameter."""

_UNKNOWN: Final = "unexpected_keyword_argument"


@dataclass(frozen=True, slots=True)
class Signature:
    """What a function takes. Made by `of`; immutable, and shared by all calls."""

    parameters: Parameters
    docstring: Docstring
    input_schema: Mapping[str, Any]
    names: Mapping[str, str]
    """JSON name of each parameter -> its name in Python."""
    required: frozenset[str]
    """JSON names of the parameters without a default."""
    _adapter: TypeAdapter[dict[str, object]]

    @classmethod
    def of(
        cls,
        fn: Callable[..., Any],
        *,
        name: str,
        input_schema: Mapping[str, Any] | None = None,
    ) -> "Signature":
        """Read `fn` once. A raw `input_schema` is kept to the letter and has to fit the parameters.

        Raises:
            ConfigurationError: the function cannot be called with named JSON values, or an annotation says nothing.
        """
        parameters = read_parameters(fn, name)
        docstring = parse_docstring(inspect.getdoc(fn))
        adapter, generated = _built(parameters)
        properties: dict[str, dict[str, Any]] = generated["properties"]
        if len(properties) != len(parameters.named):
            raise ConfigurationError(f"{name}: two parameters have the same alias; give each its own")
        names = dict(zip(properties, (item.name for item in parameters.named), strict=True))
        if input_schema is None:
            _refuse_extra(parameters)
            _describe_properties(properties, names, docstring)
            schema = inline_references(generated)
        else:
            schema = raw_schema(input_schema, parameters, names)
        return cls(parameters, docstring, schema, names, frozenset(generated.get("required", ())), adapter)

    @property
    def context_parameter(self) -> str | None:
        return self.parameters.context_name

    @property
    def context_type(self) -> type[Context[Any]]:
        return self.parameters.context_type

    @property
    def digest(self) -> str:
        """Changes when what the function takes changes."""
        return hashlib.sha256(json.dumps(self.input_schema, sort_keys=True).encode()).hexdigest()[:16]

    def bind(self, arguments: Mapping[str, object]) -> dict[str, object]:
        """The keyword arguments for the function, without its context.

        Raises:
            ArgumentError: they do not fit; the text says which and why, for the model.
        """
        given, extra = self._split(arguments)
        try:
            bound = self._validated(given)
        except ValidationError as error:
            repaired = self._repaired(given, error.errors(include_url=False))
            bound, given = self._retried(repaired, given, error), repaired
        wrong = [(json_name, "should be a number, not a boolean") for json_name in self._booleans(given, bound)]
        if wrong:
            raise ArgumentError(describe(wrong, "Invalid arguments"))
        return {**bound, **extra}

    def _split(self, arguments: Mapping[str, object]) -> tuple[dict[str, object], dict[str, object]]:
        """What the parameters are given, and what goes past them: into `**kwargs`, or nowhere under a raw schema."""
        known: Mapping[str, Any] = self.input_schema.get("properties", {})
        given = {key: value for key, value in arguments.items() if key in known or key not in HOST_ARGUMENTS}
        free = [key for key in given if key not in self.names and self._takes_any(key)]
        extra = {key: given.pop(key) for key in free}
        return given, extra if self.parameters.extra is not None else {}

    def _takes_any(self, key: str) -> bool:
        if self.parameters.extra is not None:
            return key != self.context_parameter and key not in self.names.values()
        # A function without parameters under a raw schema: the arguments are the author's to ignore.
        return not self.names and key in self.input_schema.get("properties", {})

    def _validated(self, given: Mapping[str, object]) -> dict[str, object]:
        return self._adapter.validate_python(ArgsKwargs((), dict(given)))

    def _repaired(self, given: Mapping[str, object], errors: Sequence[ErrorDetails]) -> dict[str, object]:
        """`given` with the failing arguments read the way some hosts mean them."""
        repaired = dict(given)
        for name in {str(error["loc"][0]) for error in errors if error["loc"]} & given.keys():
            value = given[name]
            if value is None and name not in self.required:
                del repaired[name]
            elif isinstance(value, str) and not isinstance(parsed := _parsed(value), str):
                repaired[name] = parsed
        return repaired

    def _retried(
        self, repaired: Mapping[str, object], given: Mapping[str, object], first: ValidationError
    ) -> dict[str, object]:
        if repaired == given:
            raise self._refusal(first.errors(include_url=False), given) from first
        try:
            return self._validated(repaired)
        except ValidationError as second:
            # Say what is wrong with the arguments as they came, but not about those that the second reading accepted.
            wrong = {error["loc"][:1] for error in second.errors(include_url=False)}
            errors = [error for error in first.errors(include_url=False) if error["loc"][:1] in wrong]
            raise self._refusal(errors, given) from second

    def _refusal(self, errors: Sequence[ErrorDetails], given: Mapping[str, object]) -> ArgumentError:
        problems = located([error for error in errors if error["type"] != _UNKNOWN], given)
        unknown = sorted(shortened(str(error["loc"][-1])) for error in errors if error["type"] == _UNKNOWN)
        if unknown:
            known = ", ".join(self.input_schema.get("properties", {})) or "none"
            problems.extend((name, f"unknown argument (known: {shortened(known, 200)})") for name in unknown[:1])
            problems.extend((name, "unknown argument") for name in unknown[1:])
        return ArgumentError(describe(problems, "Invalid arguments"))

    def _booleans(self, given: Mapping[str, object], bound: Mapping[str, object]) -> list[str]:
        return [name for name, value in given.items() if _became_number(value, bound[self.names[name]])]


def _built(parameters: Parameters) -> tuple[TypeAdapter[dict[str, object]], dict[str, Any]]:
    try:
        adapter = _adapter(parameters.named)
        return adapter, _open(argument_schema(adapter))
    except UNUSABLE_TYPE as error:
        for parameter in parameters.named:
            _check_alone(parameter, parameters.label)
        raise ConfigurationError(f"{parameters.label}: {first_sentence(error)}") from error


def _adapter(named: Sequence[inspect.Parameter]) -> TypeAdapter[dict[str, object]]:
    """A validator for arguments by name, made of a function that has those parameters and returns what it gets.

    It never calls the author's function, and takes names that a model's fields could not have.
    """

    def collected(**arguments: object) -> dict[str, object]:
        return arguments

    keywords = [item.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=_annotation(item)) for item in named]
    collected.__signature__ = inspect.Signature(keywords)  # type: ignore[attr-defined]  # read by inspect.signature
    collected.__annotations__ = {item.name: item.annotation for item in keywords}
    form: Any = collected
    return TypeAdapter(form)


def _annotation(parameter: inspect.Parameter) -> Any:
    return Any if parameter.annotation is EMPTY else parameter.annotation


def _check_alone(parameter: inspect.Parameter, label: str) -> None:
    try:
        argument_schema(_adapter([parameter]))
    except UNUSABLE_TYPE as error:
        raise ConfigurationError(
            f"{label}: parameter {parameter.name!r} cannot be taken from JSON: {first_sentence(error)}. Annotate it "
            "with a type that JSON can carry, or drop it"
        ) from error


def _open(generated: dict[str, Any]) -> dict[str, Any]:
    generated.pop("additionalProperties", None)
    return {"type": "object", "properties": generated.pop("properties", {}), **generated}


def _refuse_extra(parameters: Parameters) -> None:
    if parameters.extra is not None:
        raise ConfigurationError(
            f"{parameters.label} takes **{parameters.extra.name}, which no schema can list; name the parameters, "
            "or describe the arguments with input_schema="
        )


def _describe_properties(properties: dict[str, dict[str, Any]], names: Mapping[str, str], doc: Docstring) -> None:
    for json_name, schema in properties.items():
        text = doc.parameters.get(names[json_name])
        if text:
            schema.setdefault("description", text)


def _parsed(text: str) -> object:
    try:
        value: object = json.loads(text, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        return text
    return value


def _no_constant(token: str) -> NoReturn:
    raise ValueError(f"{token} is no JSON")


def _became_number(given: object, bound: object) -> bool:
    if isinstance(given, bool):
        return type(bound) in (int, float)
    if isinstance(given, list) and isinstance(bound, list | tuple):
        return any(map(_became_number, given, bound))
    if isinstance(given, dict) and isinstance(bound, dict):
        return any(_became_number(value, bound.get(key)) for key, value in given.items())
    return False


class HasSignature:
    """What running a definition asks of it, answered by its signature."""

    __slots__ = ()

    signature: Signature

    @property
    def digest(self) -> str:
        return self.signature.digest

    @property
    def context_parameter(self) -> str | None:
        return self.signature.context_parameter

    @property
    def context_type(self) -> type[Context[Any]]:
        return self.signature.context_type
