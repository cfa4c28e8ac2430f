"""Tables of the documents that are made, not written: settings, and parameters of the template.

`python -m tests.docs.tables` writes them anew; a test compares them.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import SecretStr

from mcp_stateless.settings import PREFIX, Settings

ROOT: Final = Path(__file__).parents[2]
END: Final = "<!-- end of table -->"


class _Loader(yaml.SafeLoader):
    """Takes CloudFormation's tags as nothing: only parameters are read here."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)


def settings_table() -> str:
    """One row a field of `Settings`, in their order."""
    rows = [
        (f"`{PREFIX}{name.upper()}`", _default(field.default), field.description or "")
        for name, field in Settings.model_fields.items()
    ]
    return _table(("variable", "default", "what it does"), rows)


def parameters_table() -> str:
    """One row a parameter of template.yaml."""
    rows = [
        (f"`{name}`", _given(parameter), str(parameter.get("Description", "")))
        for name, parameter in template_parameters().items()
    ]
    return _table(("parameter", "default", "what it does"), rows)


def template_parameters() -> Mapping[str, Mapping[str, Any]]:
    template = yaml.load((ROOT / "template.yaml").read_text(encoding="utf-8"), _Loader)
    parameters: Mapping[str, Mapping[str, Any]] = template["Parameters"]
    return parameters


TABLES: Final[Mapping[str, tuple[str, Callable[[], str]]]] = {
    "settings": ("README.md", settings_table),
    "parameters": ("docs/deploying.md", parameters_table),
}
"""Name of the table -> the document it stands in, and what makes it."""


def stands(name: str) -> str:
    """The table as it stands in its document, between `<!-- table: name -->` and `<!-- end of table -->`."""
    found = _place(name).search(_document(name).read_text(encoding="utf-8"))
    assert found, f"{TABLES[name][0]} has no place for the table {name}"
    return found[1].removesuffix("\n")


def main() -> None:
    """Write every table into its document."""
    for name, (_, make) in TABLES.items():
        path = _document(name)
        before, _, after = _place(name).split(path.read_text(encoding="utf-8"), maxsplit=1)
        path.write_text(before + _opening(name) + make() + "\n" + END + after, encoding="utf-8")


def _document(name: str) -> Path:
    return ROOT / TABLES[name][0]


def _place(name: str) -> re.Pattern[str]:
    return re.compile(f"{re.escape(_opening(name))}(.*?){END}", re.DOTALL)


def _opening(name: str) -> str:
    return f"<!-- table: {name} -->\n\n"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(map(_cell, line))} |\n" for line in lines)


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _default(value: object) -> str:
    if isinstance(value, tuple):
        assert not any(isinstance(item, SecretStr) for item in value), "a secret is no default"
        # One piece each, so that the column can be narrow.
        return ", ".join(f"`{item}`" for item in value) or "unset"
    if isinstance(value, bool):
        value = str(value).lower()
    return "unset" if value in (None, "") else f"`{value}`"


def _given(parameter: Mapping[str, Any]) -> str:
    value = parameter.get("Default")
    return "none" if value is None else "empty" if value == "" else f"`{value}`"


if __name__ == "__main__":
    main()
