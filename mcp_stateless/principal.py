"""Who is calling, as a value. Anonymous is a principal like any other, so nobody checks for None."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller. `issuer` and `subject` identify it; client, scopes and claims ride along and may change in a call."""

    issuer: str
    subject: str
    client_id: str | None = field(default=None, compare=False)
    scopes: frozenset[str] = field(default=frozenset(), compare=False)
    claims: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)

    @property
    def is_anonymous(self) -> bool:
        return self == ANONYMOUS

    @property
    def key(self) -> str:
        """One string that two principals share only when they are the same caller; what tokens are bound to."""
        return f"{len(self.issuer)}:{self.issuer}{self.subject}"


ANONYMOUS: Final = Principal(issuer="", subject="")
"""Everybody who did not prove who they are: one principal, so binding to it keeps nobody apart."""
