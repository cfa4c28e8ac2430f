"""Tables of the documents that are made, not written: settings, and parameters of the template.

`python -m tests.docs.tables` writes them anew; a test compares them.
"""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import yaml
from pydantic import SecretStr

from mcp_stateless.settings import PREFIX, Settings

ROOT: Final = Path(__file__).parents[2]


class _Loader(yaml.SafeLoader):
    """Takes CloudFormation's tags as nothing: only parameters are read here."""


_Loader.add_multi_constructor("!", lambda loader, suffix, node: None)  # type: ignore[no-untyped-call]


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
    template = yaml.load((ROOT / "template.yaml").read_text(encoding="utf-8"), _Loader)  # noqa: S506
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
    return found[2]


def main() -> None:
    """Write every table into its document."""
    for name, (_, make) in TABLES.items():
        path = _document(name)
        text = path.read_text(encoding="utf-8")
        path.write_text(_place(name).sub(lambda found: found[1] + make() + found[3], text), encoding="utf-8")


def _document(name: str) -> Path:
    return ROOT / TABLES[name][0]


def _place(name: str) -> re.Pattern[str]:
    return re.compile(rf"(<!-- table: {name} -->\n\n)(.*?)(\n<!-- end of table -->)", re.DOTALL)


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "".join(f"| {' | '.join(cell.replace('|', '\\|') for cell in line)} |\n" for line in lines)


def _default(value: object) -> str:
    if isinstance(value, tuple):
        assert not any(isinstance(item, SecretStr) for item in value), "a secret is no default"
        value = ",".join(map(str, value))
    if isinstance(value, bool):
        value = str(value).lower()
    return "unset" if value in (None, "") else f"`{value}`"


def _given(parameter: Mapping[str, Any]) -> str:
    value = parameter.get("Default")
    return "none" if value is None else "empty" if value == "" else f"`{value}`"


if __name__ == "__main__":
    main()
