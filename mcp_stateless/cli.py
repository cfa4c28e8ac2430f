"""The command `mcp-stateless`: `new` writes a project, `dev` serves one on this machine.

Owns what is typed and printed; `scaffold` knows what a project is. Errors end with exit code 1 and one sentence, wrong
usage with 2.
"""

import importlib
import json
import os
import socket
import sys
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Final

from mcp_stateless.errors import ConfigurationError
from mcp_stateless.server import MCPServer

try:
    import click
except ModuleNotFoundError:
    sys.exit("The command needs packages that are not installed: pip install 'mcp-stateless[cli]'")

WORKERS: Final = 2
"""Processes that work on long calls under `dev --dynamodb`."""

LONG_CALLS: Final = {
    "off": "Long-running tools run in place: MCP_POLLING is off.\n",
    "memory": "Calls of long-running tools are kept in memory and worked on by threads.\n",
    "dynamodb": f"Calls of long-running tools are kept in DynamoDB and worked on by {WORKERS} processes.\n",
}


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="mcp-stateless")
def main() -> None:
    """Write and run stateless MCP servers for AWS Lambda."""


@main.command(epilog="Example: mcp-stateless new weather-tools && cd weather-tools && make test && make run")
@click.argument("name")
@click.option(
    "--directory",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=".",
    show_default="here",
    help="Where the project's folder is made.",
)
@click.option(
    "--wheel",
    type=click.Path(dir_okay=False, path_type=Path),
    help="A wheel of mcp-stateless that the project carries, for a release that is on no index.",
)
@click.option("--polling", is_flag=True, help="With a long-running tool, and a worker and a table in the template.")
def new(name: str, directory: Path, wheel: Path | None, polling: bool) -> None:
    """Write a new server into the folder NAME: tools, tests, events, template, Makefile."""
    from mcp_stateless.scaffold import write_project

    try:
        project = write_project(name, directory, wheel, polling=polling)
    except ModuleNotFoundError as error:
        raise click.ClickException(_missing(error)) from error
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    click.echo(f"Wrote {project.folder}. Its tools are in handler/app.py.")
    if project.wheel:
        click.echo(f"It carries wheels/{project.wheel}.")
    click.echo(f"\n  cd {project.folder}\n  make test\n  make run\n\nThen `make deploy` puts it on Lambda.")


@main.command(epilog="Example: mcp-stateless dev tools.main:app --port 8001 --reload")
@click.argument("target", default="handler.app:app")
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 lets other machines in.")
@click.option("--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="0 takes a free one.")
@click.option("--reload", is_flag=True, help="Start again when a file below this folder changes.")
@click.option(
    "--dynamodb",
    is_flag=True,
    help="Keep long calls in the local DynamoDB that AWS_ENDPOINT_URL_DYNAMODB names, and let two processes work on "
    "them; the Lambda handler is `lambda_handler` in the module of TARGET.",
)
def dev(target: str, host: str, port: int, reload: bool, dynamodb: bool) -> None:
    """Serve the app at TARGET (module:attribute, by default handler.app:app) on this machine.

    Calls of long-running tools are kept in memory and worked on by threads, unless MCP_POLLING says otherwise;
    MCP_POLLING=off runs them in place.
    """
    if reload and dynamodb:
        raise click.UsageError("--reload does not start the workers of --dynamodb again: use one of the two")
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        raise click.ClickException(_missing(error)) from error
    sys.path.insert(0, os.getcwd())
    with ExitStack() as stack:
        # Before the server is made, which reads the environment once.
        _choose_store(stack, target, dynamodb)
        servers = _servers(_module(target))
        listener = stack.enter_context(_listening(host, port))
        for server in servers:
            click.echo(_banner(server, f"http://{_reachable(host)}:{listener.getsockname()[1]}"))
        click.echo("Stop with Ctrl-C.")
        uvicorn.run(
            target, fd=listener.fileno(), reload=reload, app_dir=os.getcwd(), log_level="warning", access_log=False
        )


def _choose_store(stack: ExitStack, target: str, dynamodb: bool) -> None:
    if not dynamodb:
        os.environ["MCP_POLLING"] = os.environ.get("MCP_POLLING") or "memory"
        return
    from mcp_stateless.testing.local_workers import local_workers

    module, _ = _split(target)
    try:
        stack.enter_context(local_workers(f"{module}:lambda_handler", Path.cwd(), WORKERS))
    except ModuleNotFoundError as error:
        raise click.ClickException(_missing(error, "aws")) from error
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error


def _split(target: str) -> tuple[str, str]:
    name, colon, attribute = target.partition(":")
    if not colon or not name or not attribute:
        raise click.BadParameter(f"{target!r} is not module:attribute, such as handler.app:app", param_hint="TARGET")
    return name, attribute


def _module(target: str) -> ModuleType:
    name, attribute = _split(target)
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or not f"{name}.".startswith(f"{error.name}."):
            raise  # The module is there, and lacks something itself: its traceback says where.
        raise click.ClickException(
            f"There is no module {error.name!r} in {os.getcwd()}: start from its folder"
        ) from None
    except ConfigurationError as error:
        raise click.ClickException(str(error)) from error
    if not hasattr(module, attribute):
        raise click.ClickException(f"The module {name} has no attribute {attribute!r}")
    return module


def _servers(module: ModuleType) -> list[MCPServer]:
    return [value for value in vars(module).values() if isinstance(value, MCPServer)]


def _listening(host: str, port: int) -> socket.socket:
    """Listen before the address is printed, so that what is printed is true; uvicorn would only log that it failed."""
    try:
        return socket.create_server((host, port), family=socket.AF_INET6 if ":" in host else socket.AF_INET)
    except OSError as error:
        raise click.ClickException(
            f"Cannot listen on {host} port {port} ({error.strerror}). Is another server running? "
            "Choose another port with --port; 0 takes a free one"
        ) from error


def _reachable(host: str) -> str:
    """The name of `host` in a URL: an address for all interfaces is none to connect to."""
    if host in ("0.0.0.0", "::"):
        return "127.0.0.1"
    return f"[{host}]" if ":" in host else host


def _banner(server: MCPServer, origin: str) -> str:
    url = f"{origin}{server.settings.base_path}{server.settings.path}"
    tools = "".join(
        f"\n  {tool.name:24} {(tool.description or '').partition(chr(10))[0]}"
        for tool in server.registry.tools.values()
    )
    where = LONG_CALLS[server.settings.polling] if server.registry.has_long_tools else ""
    snippet = json.dumps({"mcpServers": {server.name: {"type": "http", "url": url}}})
    return (
        f"{server.name} serves {len(server.registry.tools)} tools at {url}{tools}\n{where}\n"
        f"Claude Code:    claude mcp add --transport http {server.name} {url}\n"
        f"Other clients:  {snippet}\n"
    )


def _missing(error: ModuleNotFoundError, extra: str = "cli") -> str:
    return f"The package {error.name} is not installed: pip install 'mcp-stateless[{extra}]'"


if __name__ == "__main__":
    main()
