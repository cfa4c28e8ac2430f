"""What CloudFormation makes of a template for given parameters: conditions, rules, references, as far as needed here.

Works on the template after SAM's transform. Attributes of resources and `Fn::Sub` stay as they are written: nothing is
deployed that could give them a value.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

NOTHING: Final = object()
"""What `AWS::NoValue` takes the place of is left out."""


class Deployed:
    """A stack as far as its template tells. A parameter that is not given has its default."""

    def __init__(self, template: Mapping[str, Any], **given: str) -> None:
        unknown = given.keys() - template["Parameters"].keys()
        assert not unknown, f"the template has no parameters {unknown}"
        self._template = template
        defaults = {name: each.get("Default") for name, each in template["Parameters"].items()}
        self._parameters = {**defaults, **given}

    def refused(self) -> list[str]:
        """The descriptions of the assertions that keep CloudFormation from making anything."""
        return [
            assertion["AssertDescription"]
            for rule in self._template["Rules"].values()
            if self.value(rule["RuleCondition"])
            for assertion in rule["Assertions"]
            if not self.value(assertion["Assert"])
        ]

    def resources(self, kind: str = "") -> dict[str, dict[str, Any]]:
        """The properties of the resources of a kind, or of all."""
        return {
            name: self.value(each.get("Properties", {}))
            for name, each in self._template["Resources"].items()
            if each["Type"].startswith(kind) and self._is_made(each)
        }

    def outputs(self) -> dict[str, Any]:
        made = {name: each for name, each in self._template["Outputs"].items() if self._is_made(each)}
        return {name: self.value(each["Value"]) for name, each in made.items()}

    def variables(self, function: str) -> dict[str, str]:
        """The environment of a function, as it finds it; a name of another resource is the name in the template."""
        variables = self.resources("AWS::Lambda::Function")[function]["Environment"]["Variables"]
        return {name: value["Ref"] if isinstance(value, dict) else value for name, value in variables.items()}

    def value(self, node: Any) -> Any:
        """A part of the template with everything put in that is known before anything is made."""
        if isinstance(node, list):
            return [value for value in map(self.value, node) if value is not NOTHING]
        if not isinstance(node, Mapping):
            return node
        if len(node) == 1:
            [(name, argument)] = node.items()
            if name in FUNCTIONS:
                return FUNCTIONS[name](self, argument)
        values = {key: self.value(each) for key, each in node.items()}
        return {key: each for key, each in values.items() if each is not NOTHING}

    def reference(self, name: str) -> Any:
        if name == "AWS::NoValue":
            return NOTHING
        return self._parameters.get(name, {"Ref": name})

    def condition(self, name: str) -> bool:
        return bool(self.value(self._template["Conditions"][name]))

    def _is_made(self, entry: Mapping[str, Any]) -> bool:
        return "Condition" not in entry or self.condition(entry["Condition"])


def _if(stack: Deployed, argument: Any) -> Any:
    condition, then, otherwise = argument
    return stack.value(then if stack.condition(condition) else otherwise)


def _equals(stack: Deployed, argument: Any) -> bool:
    # CloudFormation compares texts: the parameter 0 is the text 0.
    left, right = stack.value(argument)
    return str(left) == str(right)


def _contains(stack: Deployed, argument: Any) -> bool:
    values, value = stack.value(argument)
    return value in values


def _split(stack: Deployed, argument: Any) -> list[str]:
    separator, text = stack.value(argument)
    parts: list[str] = text.split(separator)
    return parts


FUNCTIONS: Final[Mapping[str, Callable[[Deployed, Any], Any]]] = {
    "Ref": Deployed.reference,
    "Condition": Deployed.condition,
    "Fn::If": _if,
    "Fn::Equals": _equals,
    "Fn::Contains": _contains,
    "Fn::Split": _split,
    "Fn::And": lambda stack, argument: all(stack.value(argument)),
    "Fn::Or": lambda stack, argument: any(stack.value(argument)),
    "Fn::Not": lambda stack, argument: not stack.value(argument)[0],
}
