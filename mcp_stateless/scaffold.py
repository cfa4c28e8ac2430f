"""Write a new project from the template in `templates/`.

Owns the rules of `mcp-stateless new`: which names are good, that nothing is overwritten, and which wheel travels with
the project. Prints nothing; `sam init --location` works on the same template without this module.
"""

import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from importlib.metadata import distribution
from importlib.util import find_spec
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit
from urllib.request import url2pathname

from mcp_stateless.errors import ConfigurationError

TEMPLATE: Final = Path(__file__).with_name("templates")
DISTRIBUTION: Final = "mcp-stateless"

NAME: Final = re.compile(r"(?=.{2,63}$)[a-z][a-z0-9]*(?:-[a-z0-9]+)*", re.ASCII)
"""Fits a folder, a CloudFormation stack (letters, digits, hyphens; 128 characters) and a server's name in hosts."""


@dataclass(frozen=True, slots=True)
class Project:
    """What was written."""

    folder: Path
    wheel: str | None
    """File name of the wheel that the project carries; None: it installs the package from an index."""


def write_project(name: str, parent: Path, wheel: Path | None = None, *, polling: bool = False) -> Project:
    """Write the project `name` into a new folder of `parent`.

    `wheel` is the build of this package that the project carries. By default one is made when the package is
    installed from a source checkout, and the one it was installed from is taken when that was a local file.
    With `polling` it has a long-running tool, and the template what such tools need on Lambda.

    Raises:
        ConfigurationError: the name is unfit, the folder exists, or there is no such wheel.
    """
    if not NAME.fullmatch(name):
        raise ConfigurationError(
            f"{name!r} is not a good name: start with a lower-case letter, then use lower-case letters, digits and "
            "single hyphens, at most 63 characters in all, for example weather-tools"
        )
    folder = parent / name
    if folder.exists():
        raise ConfigurationError(f"{folder} exists already, and nothing is ever overwritten. Choose another name")
    with tempfile.TemporaryDirectory() as scratch:
        carried = _wheel(wheel, Path(scratch))
        _generate(name, parent, polling)
        if carried:
            shutil.copy(carried, folder / "wheels")
        return Project(folder, carried.name if carried else None)


def _generate(name: str, parent: Path, polling: bool) -> None:
    # Not cookiecutter's main(): that one also reads the user's own settings and keeps a replay file in the home.
    from cookiecutter.generate import generate_files

    defaults = json.loads((TEMPLATE / "cookiecutter.json").read_text(encoding="utf-8"))
    requirement = f"{DISTRIBUTION}=={distribution(DISTRIBUTION).version}"
    chosen = {"project_name": name, "requirement": requirement, "polling": "yes" if polling else "no"}
    context = {**defaults, **chosen}
    generate_files(str(TEMPLATE), {"cookiecutter": context}, str(parent), accept_hooks=False)


def _wheel(given: Path | None, scratch: Path) -> Path | None:
    if given is not None:
        if not given.is_file() or not re.match(r"mcp_stateless-.+\.whl", given.name):
            raise ConfigurationError(f"{given} is not a wheel of {DISTRIBUTION} (a file mcp_stateless-....whl)")
        return given
    origin = _origin()
    if origin is None:
        return None
    return origin if origin.suffix == ".whl" else _built(origin, scratch)


def _origin() -> Path | None:
    """The folder or wheel that this package was installed from, if it is there still; None: an index."""
    recorded = distribution(DISTRIBUTION).read_text("direct_url.json")
    url = urlsplit(json.loads(recorded)["url"]) if recorded else None
    path = Path(url2pathname(url.path)) if url and url.scheme == "file" else None
    return path if path and path.exists() and (path.is_dir() or path.suffix == ".whl") else None


def _built(source: Path, scratch: Path) -> Path:
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check", "--no-deps"]
    # A developer's environment holds the build backend: then nothing is fetched.
    isolation = ["--no-build-isolation"] if find_spec("hatchling") else []
    finished = subprocess.run(
        [*build, *isolation, "--wheel-dir", str(scratch), str(source)], capture_output=True, text=True, check=False
    )
    wheels = list(scratch.glob("*.whl"))
    if finished.returncode or not wheels:
        raise ConfigurationError(
            f"No wheel could be built from {source}; build one and pass it with --wheel.\n{finished.stderr.strip()}"
        )
    return wheels[0]
