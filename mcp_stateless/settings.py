"""All settings of a server: one frozen model, read from the environment once."""

from collections.abc import Mapping
from typing import Final, Literal, Self, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, SecretStr, ValidationError, field_validator

from mcp_stateless.errors import ConfigurationError
from mcp_stateless.protocol.inbound import LogLevel
from mcp_stateless.protocol.revisions import REVISIONS
from mcp_stateless.protocol.sealing import MAKE_A_KEY, MIN_KEY_BYTES

PREFIX: Final = "MCP_"
"""Each field is read from `MCP_` + its name in upper case; lists are separated by commas."""


Identity: TypeAlias = Literal[
    "none", "jwt_authorizer", "cognito_authorizer", "lambda_authorizer", "iam", "alb", "bearer"
]

LISTS: Final = (
    "revisions",
    "allowed_origins",
    "signing_keys",
    "authorization_servers",
    "token_algorithms",
    "required_scopes",
    "scopes_supported",
    "poll_user_agents",
    "no_poll_user_agents",
)
"""Fields that are lists, in the environment separated by commas."""


class Settings(BaseModel):
    """What an operator may choose. Every field has a default that works on Lambda behind API Gateway."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    path: str = Field(
        default="/mcp", description="Where the MCP endpoint is served; a trailing slash is served as well."
    )
    health_path: str = Field(
        default="/health", description="Where `GET` answers that the server is up, without a token."
    )
    base_path: str = Field(
        default="", description="Path prefix in front of the app, such as a custom domain's base path."
    )
    revisions: tuple[str, ...] = Field(default=tuple(REVISIONS), description="Protocol revisions served.")
    allowed_origins: tuple[str, ...] = Field(
        default=("http://localhost:*", "http://127.0.0.1:*"),
        description="Browser origins served, such as `https://app.example.com`; `*` serves all, `none` none of them.",
    )
    json_response: bool = Field(
        default=False, description="Never answer with SSE: progress and log messages are dropped."
    )
    log_messages: Literal["off"] | LogLevel = Field(
        default="off",
        description="Offer MCP log messages (`ctx.info(...)`); the least severe level sent to legacy clients.",
    )
    gateway_timeout_ms: int | None = Field(
        default=None,
        gt=0,
        description="Time limit of what stands in front; unset: the event source's own (30 s, 29 s, none).",
    )
    deadline_margin_ms: int = Field(
        default=1000,
        ge=0,
        description="How long before a time limit a call is ended, so that the answer still gets out.",
    )
    max_request_bytes: int = Field(
        default=6 * 1024 * 1024,
        gt=0,
        description="Largest request body; Lambda's own quota is 6 MB, 1 MB behind an ALB.",
    )
    max_event_bytes: int = Field(
        default=1_000_000, gt=0, description="Largest SSE event: Python clients refuse events over 1,048,576 bytes."
    )
    signing_keys: tuple[SecretStr, ...] = Field(
        default=(),
        description="Secrets of 32 bytes or more, without commas, that sign what clients bring back: event ids, task "
        "ids, states. The newest first; all verify. Needed on Lambda by servers that ask or poll.",
    )
    encrypt_state: bool = Field(
        default=False, description="Encrypt what clients bring back, besides signing it; needs the extra `encryption`."
    )
    max_state_bytes: int = Field(
        default=64 * 1024, gt=0, description="Largest state of a call that waits for an answer, before compression."
    )
    state_ttl_s: int = Field(default=3600, gt=0, description="How long a client may take to answer a question.")
    identity: Identity = Field(
        default="none",
        description="Who says who is calling: an authorizer of AWS in front, a load balancer, or a bearer token that "
        "is verified here. Callers it does not name are refused.",
    )
    subject_key: str = Field(
        default="sub", description="Where a Lambda authorizer's context has the caller; else its `principalId`."
    )
    public_url: str = Field(
        default="",
        description="The endpoint's URL as users type it; unset: that of the API Gateway or Function URL. Needed "
        "behind a load balancer and locally, where tokens are verified.",
    )
    audience: str = Field(default="", description="Audience that tokens must have; unset: the public URL.")
    authorization_servers: tuple[str, ...] = Field(
        default=(), description="Issuers whose tokens hold, and which clients are sent to for one."
    )
    jwks_url: str = Field(default="", description="Key set of the one issuer; unset: found by its metadata.")
    token_algorithms: tuple[str, ...] = Field(
        default=("RS256", "ES256", "PS256", "EdDSA"), description="Signature algorithms that tokens may have."
    )
    required_scopes: tuple[str, ...] = Field(default=(), description="Scopes that every request needs.")
    scopes_supported: tuple[str, ...] = Field(
        default=(), description="Scopes that clients ask for at first; unset: the required ones."
    )
    alb_arn: str = Field(default="", description="ARN of the load balancer whose word holds.")
    alb_region: str = Field(default="", description="Its Region.")
    polling: Literal["off", "memory", "dynamodb"] = Field(
        default="off",
        description="Where calls of long-running tools lie while clients come back for them, as polls, tasks or "
        "rounds; off: they run in place. `memory` is for local runs.",
    )
    call_table: str = Field(default="", description="DynamoDB table of the calls.")
    worker_function: str = Field(
        default="", description="Lambda function that works on the calls; unset: a thread of this process."
    )
    call_ttl_s: int = Field(
        default=6 * 3600, gt=0, description="How long a call and its result are kept, counted from its start."
    )
    max_open_calls: int = Field(
        default=0,
        ge=0,
        description="Most long calls that one authenticated caller may have open, for two writes more a call; "
        "0: any number. Anonymous callers are not counted.",
    )
    worker_margin_ms: int = Field(
        default=5000, ge=0, description="How long before its end a worker stops the tool, to write what came of it."
    )
    flush_interval_ms: int = Field(default=1000, gt=0, description="Least time between two writes of progress or logs.")
    min_retry_ms: int = Field(default=1000, gt=0, description="Shortest wait between two polls of a call.")
    max_retry_ms: int = Field(default=15_000, gt=0, description="Longest wait between two polls of a call.")
    hold_seconds: float = Field(
        default=0, ge=0, description="How long a poll is held when there is nothing new; billed, so 0 is the cheapest."
    )
    poll_user_agents: tuple[str, ...] = Field(
        default=("codex-mcp-client/",), description="Clients that poll although they name an older revision."
    )
    no_poll_user_agents: tuple[str, ...] = Field(
        default=("Java-http-client/",), description="Clients that name 2025-11-25 and cannot poll."
    )
    client_token: Literal["auto", "always", "never"] = Field(
        default="auto",
        description="Give clients an `Mcp-Session-Id` that says what they can be asked; auto: if a tool asks.",
    )
    client_token_ttl_s: int = Field(default=30 * 24 * 3600, gt=0, description="How long such a token is good for.")
    check_call: bool = Field(
        default=False,
        description="Give clients that have no other way to a long result a ticket for the tool `check_call`. With "
        "`MCP_STATE_ROUNDS` that tool is offered anyway.",
    )
    state_rounds: bool = Field(
        default=True,
        description="Let 2026-07-28 clients without tasks repeat a long call until its result is there.",
    )
    max_rounds: int = Field(
        default=9, gt=0, description="Rounds of such a call, questions included; clients stop at ten, some at nine."
    )
    round_hold_s: float | None = Field(
        default=None, ge=0, description="How long a round is held; unset: 20 s behind API Gateway, 50 s without it."
    )
    page_size: int = Field(default=0, ge=0, description="Entries in a list's page; 0: everything in one page.")
    list_ttl_ms: int = Field(
        default=300_000, ge=0, description="How long clients at 2026-07-28 may keep lists and `server/discover`."
    )
    resource_ttl_ms: int = Field(default=0, ge=0, description="How long clients at 2026-07-28 may keep a resource.")

    @classmethod
    def from_environment(cls, environ: Mapping[str, str]) -> Self:
        """Read the settings from environment variables; an empty variable counts as unset.

        Raises:
            ConfigurationError: a value does not fit; the message names the variable and what it takes.
        """
        given = {name: environ.get(PREFIX + name.upper(), "") for name in cls.model_fields}
        try:
            return cls.model_validate({name: value for name, value in given.items() if value})
        except ValidationError as error:
            raise ConfigurationError(_explain(error)) from None

    @field_validator(*LISTS, mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        return tuple(part.strip() for part in value.split(",") if part.strip()) if isinstance(value, str) else value

    @field_validator("signing_keys")
    @classmethod
    def _long(cls, value: tuple[SecretStr, ...]) -> tuple[SecretStr, ...]:
        if any(len(key.get_secret_value().encode()) < MIN_KEY_BYTES for key in value):
            raise ValueError(f"takes keys of {MIN_KEY_BYTES} bytes or more; make one: {MAKE_A_KEY}")
        return value

    @field_validator("revisions")
    @classmethod
    def _known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        unknown = [name for name in value if name not in REVISIONS]
        if unknown or not value:
            raise ValueError(f"takes revisions of {', '.join(REVISIONS)}")
        return tuple(name for name in REVISIONS if name in value)

    @field_validator("path", "health_path", "base_path")
    @classmethod
    def _rooted(cls, value: str) -> str:
        path = value.rstrip("/")
        if path and (not path.startswith("/") or "//" in path or "?" in path):
            raise ValueError("takes a path that starts with one slash, such as /mcp")
        return path

    @field_validator("public_url")
    @classmethod
    def _absolute(cls, value: str) -> str:
        if value and not value.startswith(("https://", "http://")):
            raise ValueError("takes the endpoint's whole URL, such as https://tools.example.com/mcp")
        return value

    @field_validator("allowed_origins")
    @classmethod
    def _origins(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for origin in value:
            if origin not in ("*", "none") and ("://" not in origin or origin.count("/") != 2):
                raise ValueError("takes origins such as https://app.example.com, without a path or trailing slash")
        return tuple(origin.lower() for origin in value if origin != "none")


def _explain(error: ValidationError) -> str:
    """One sentence a variable: its name and what it takes, never the value, which may be a secret."""
    reasons = (
        f"{PREFIX}{str(item['loc'][0]).upper()}: {item['msg'].removeprefix('Value error, ')}" for item in error.errors()
    )
    return "The settings in the environment do not fit. " + "; ".join(reasons)
