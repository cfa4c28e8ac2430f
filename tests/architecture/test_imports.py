"""The shape of the package, read from its source: imports point down, the core is pure, a few things are nowhere."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import mcp_stateless

PACKAGE = Path(mcp_stateless.__file__).parent
NAME = PACKAGE.name

LAYERS = (
    ("errors", "principal"),
    ("protocol",),
    ("invocation", "asgi", "sources", "content", "cors", "notifications", "encryption"),
    ("settings", "oauth", "identity"),
    ("tokens",),
    ("access",),
    ("definitions.form", "definitions.json_schema"),
    ("questions",),
    ("journal",),
    ("context",),
    ("run", "definitions"),
    ("results", "registry"),
    ("calls.record", "calls.client_token", "calls.cursor", "calls.launch"),
    ("calls.store",),
    ("calls.insist",),
    ("calls.items", "calls.memory", "calls.sink", "calls.expressions", "calls.dynamodb", "calls.places"),
    ("calls.desk",),
    ("calls",),
    ("exchange",),
    ("rounds", "listing", "long_calls"),
    ("calling",),
    ("methods",),
    ("endpoint",),
    ("http", "aws"),
    ("work_events",),
    ("server",),
    ("",),
    ("testing", "cli", "scaffold"),
)
"""Modules and subpackages from the bottom up; a module imports from its own row or a lower one, never in a circle."""

STANDARD_BUT_IMPURE = ("time", "random", "os", "secrets", "socket", "subprocess", "threading", "asyncio", "logging")
THIRD_PARTY_IMPURE = ("fastapi", "starlette", "mangum", "boto3", "botocore", "uvicorn", "httpx")


HOLDERS = {
    "aws": {"mangum"},
    "http": {"fastapi", "starlette"},
    "calls.dynamodb": {"boto3", "botocore"},
    "encryption": {"cryptography"},
    "tokens": {"jwt"},
}
"""The module of each heavy package: imported itself only where it is needed, inside a function."""


def modules() -> dict[str, ast.Module]:
    """Every module by its name below the package; the package itself is the empty name."""
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        if "templates" in parts:
            continue
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found[name] = ast.parse(path.read_text("utf-8"), str(path))
    return found


MODULES = modules()


def layer(module: str) -> int:
    """The row of a module: that of the longest name in the list that it is or lies under."""
    rows = {name: row for row, names in enumerate(LAYERS) for name in names}
    parts = module.split(".")
    for length in range(len(parts), 0, -1):
        row = rows.get(".".join(parts[:length]))
        if row is not None:
            return row
    raise AssertionError(f"{module!r} is in no layer: say where it belongs")


def imports(tree: ast.AST, *, lazy: bool = True) -> Iterator[str]:
    """Absolute names of what a module imports; without `lazy`, only what is imported with the module."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute"
            assert node.module is not None
            for alias in node.names:
                inner = f"{node.module}.{alias.name}".removeprefix(f"{NAME}.")
                yield f"{NAME}.{inner}" if inner in MODULES and node.module.startswith(NAME) else node.module
        elif is_type_checking(node):
            continue
        elif lazy or not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield from imports(node, lazy=lazy)


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def own(names: Iterator[str]) -> set[str]:
    return {name.removeprefix(NAME).removeprefix(".") for name in names if name.split(".")[0] == NAME}


def test_every_module_has_a_layer_and_every_name_in_the_list_is_a_module() -> None:
    for module in MODULES:
        layer(module)
    listed = {name for names in LAYERS for name in names}
    assert listed <= set(MODULES)


@pytest.mark.parametrize("module", MODULES)
def test_imports_point_down(module: str) -> None:
    above = {name for name in own(imports(MODULES[module], lazy=False)) if layer(name) > layer(module)}
    assert not above


@pytest.mark.parametrize("module", MODULES)
def test_imports_inside_functions_point_down_too(module: str) -> None:
    above = {name for name in own(imports(MODULES[module])) if layer(name) > layer(module)}
    assert not above


def test_no_imports_form_a_circle() -> None:
    graph = {module: own(imports(tree, lazy=False)) - {module} for module, tree in MODULES.items()}
    done: set[str] = set()

    def visit(module: str, path: tuple[str, ...]) -> None:
        assert module not in path, " -> ".join((*path, module))
        if module not in done:
            for name in graph[module]:
                visit(name, (*path, module))
            done.add(module)

    for module in graph:
        visit(module, ())


@pytest.mark.parametrize("module", [name for name in MODULES if name.split(".")[0] == "protocol"])
def test_the_protocol_is_pure(module: str) -> None:
    tree = MODULES[module]
    roots = {name.split(".")[0] for name in imports(tree)}
    assert not roots & {*STANDARD_BUT_IMPURE, *THIRD_PARTY_IMPURE, "datetime"}
    calls = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert not {call for call in calls if call.endswith((".environ", ".now", ".utcnow"))}
    assert not [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id in ("open", "print", "input")]


def test_the_event_sources_are_pure() -> None:
    roots = {name.split(".")[0] for name in imports(MODULES["sources"])}
    assert not roots & {*STANDARD_BUT_IMPURE, *THIRD_PARTY_IMPURE}


@pytest.mark.parametrize("module", MODULES)
def test_heavy_packages_are_imported_where_they_are_used_and_not_with_the_module(module: str) -> None:
    allowed = HOLDERS.get(module, set())
    if module.split(".")[0] in ("testing", "cli", "scaffold"):
        return
    roots = {name.split(".")[0] for name in imports(MODULES[module], lazy=False)}
    assert not roots & {*THIRD_PARTY_IMPURE, "click", "cookiecutter", "jsonschema", "mcp", "cryptography"} - allowed


def test_who_holds_a_heavy_package_is_imported_inside_functions() -> None:
    for module, tree in MODULES.items():
        held = own(imports(tree, lazy=False)) & set(HOLDERS)
        assert not held or module == "work_events" or module.split(".")[0] == "testing", module


@pytest.mark.parametrize("module", MODULES)
def test_some_things_are_nowhere(module: str) -> None:
    tree = MODULES[module]
    names = set(imports(tree))
    assert not [name for name in names if name.startswith(("pydantic._", "pydantic.v1", "starlette._", "mangum._"))]
    attributes = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    assert "asyncio.run" not in attributes
    assert "asyncio.get_event_loop" not in attributes
    private = {name for name in attributes if name.startswith(("pydantic._", "pydantic_core._"))}
    assert not private
    printing = [node for node in ast.walk(tree) if isinstance(node, ast.Name) and node.id == "print"]
    assert not printing or module.split(".")[0] in ("testing", "cli", "scaffold")


@pytest.mark.parametrize("module", MODULES)
def test_no_client_of_aws_is_made_when_a_module_is_imported(module: str) -> None:
    calls = [ast.unparse(node.func) for node in outside_functions(MODULES[module]) if isinstance(node, ast.Call)]
    assert not [call for call in calls if "boto3" in call or call.endswith((".client", ".resource"))]


def outside_functions(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs with the import, class bodies included."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield node
            yield from outside_functions(node)


@pytest.mark.parametrize("module", MODULES)
def test_a_module_says_what_it_owns_and_stays_small(module: str) -> None:
    tree = MODULES[module]
    assert ast.get_docstring(tree)
    assert max((getattr(node, "end_lineno", 0) or 0 for node in tree.body), default=0) <= 400
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            body = [
                item for item in node.body if not (isinstance(item, ast.Expr) and isinstance(item.value, ast.Constant))
            ]
            length = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            assert length <= 60, f"{module}.{node.name} has {length} lines"


def test_loggers_are_named_after_their_module_and_nobody_configures_logging() -> None:
    for module, tree in MODULES.items():
        text = ast.unparse(tree)
        assert "basicConfig" not in text or module.split(".")[0] in ("testing", "cli"), module
        assert "addHandler" not in text, module
        assert "getLogger()" not in text, module


def test_the_public_names_are_sorted_and_true() -> None:
    assert mcp_stateless.__all__ == sorted(mcp_stateless.__all__, key=lambda name: (not name.isupper(), name))
    assert len(set(mcp_stateless.__all__)) == len(mcp_stateless.__all__)
    imported = {
        alias.asname or alias.name
        for node in MODULES[""].body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert imported == set(mcp_stateless.__all__)
    assert all(hasattr(mcp_stateless, name) for name in mcp_stateless.__all__)
