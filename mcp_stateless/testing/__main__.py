"""`python -m mcp_stateless.testing handler.app:lambda_handler --environments 4`: Lambda events behind a local port."""

import argparse
from collections.abc import Sequence

from mcp_stateless.testing.environments import Fleet, Subprocess
from mcp_stateless.testing.http_server import HttpServer


def main(arguments: Sequence[str] | None = None) -> None:
    """Start the environments, print the URL, serve until interrupted."""
    parser = argparse.ArgumentParser(prog="python -m mcp_stateless.testing", description=__doc__)
    parser.add_argument("handler", help="module:attribute of the Lambda handler")
    parser.add_argument("--source", choices=["http_api", "rest_api", "function_url", "alb"], default="http_api")
    parser.add_argument("--stage", default="$default", help="stage of the API; a named one is part of the URL")
    parser.add_argument("--environments", type=int, default=1, help="how many processes share the requests")
    parser.add_argument("--timeout-ms", type=int, default=30_000, help="the function's timeout")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0: a free one")
    options = parser.parse_args(arguments)
    with Fleet([Subprocess(options.handler) for _ in range(options.environments)]) as fleet:
        fleet.warm_up()
        server = HttpServer(
            fleet,
            options.source,
            stage=options.stage,
            host=options.host,
            port=options.port,
            context_ms=options.timeout_ms,
        )
        print(server.url, flush=True)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            pass


if __name__ == "__main__":
    main()
