"""The server as an OAuth 2.1 protected resource: its metadata (RFC 9728), and the challenges that point to it. Pure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from mcp_stateless.protocol.revisions import Wire

WELL_KNOWN: Final = "/.well-known/oauth-protected-resource"


@dataclass(frozen=True, slots=True)
class ProtectedResource:
    """One endpoint as clients know it. `url` is what users type, to the last character."""

    url: str
    authorization_servers: Sequence[str] = ()
    scopes_supported: Sequence[str] = ()
    path: str = ""
    """The endpoint's path as the server knows it; the URL may have a stage or a base path in front."""

    @property
    def metadata_url(self) -> str:
        """Where the metadata is found by whoever was challenged.

        The standard place is at the root of the host; behind a stage, requests to it do not reach this server.
        """
        parts = urlsplit(self.url)
        if parts.path.rstrip("/") != self.path:
            return f"{self.url.rstrip('/')}{WELL_KNOWN}"
        return f"{parts.scheme}://{parts.netloc}{WELL_KNOWN}{parts.path}"

    def metadata(self) -> Wire:
        document: Wire = {
            "resource": self.url,
            "authorization_servers": list(self.authorization_servers),
            "bearer_methods_supported": ["header"],
        }
        return {**document, "scopes_supported": list(self.scopes_supported)} if self.scopes_supported else document

    def challenge(self, *, error: str | None = None, scopes: Iterable[str] = ()) -> str:
        """A `WWW-Authenticate` value (RFC 6750). Without a token there is no `error`."""
        fields = {} if error is None else {"error": error}
        if scope := " ".join(scopes):
            fields["scope"] = scope
        fields["resource_metadata"] = self.metadata_url
        return "Bearer " + ", ".join(f'{name}="{value}"' for name, value in fields.items())


def metadata_paths(path: str) -> tuple[str, ...]:
    """Where the metadata of the endpoint at `path` is asked for: with the path inserted, at the root, and below it."""
    return tuple(dict.fromkeys((f"{WELL_KNOWN}{path}", WELL_KNOWN, f"{path}{WELL_KNOWN}")))
