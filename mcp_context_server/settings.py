"""What the process was started with, read from an environment that is handed in.

Ours are named `MCP_CONTEXT_` and the name of a field of `Settings` or of `Policy`. The
variables of the reference system are honoured beside them; ours win. A value that can't
be used is ignored, with a warning that names its variable; only a store that can't be
used is refused, since another one in its place would be written to, or pruned.
"""

import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, SecretStr, ValidationError

from mcp_context_server.core.policy import Policy
from mcp_context_server.errors import InvalidInput

PREFIX = "MCP_CONTEXT_"

Summarizer = Literal["agent", "sampling", "anthropic", "extractive"]


def _paths(value: object) -> object:
    """Paths in one string, separated as in PATH."""
    return [part for part in value.split(os.pathsep) if part] if isinstance(value, str) else value


def _names(value: object) -> object:
    """Names in one string, separated by commas."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


_URL = Field(default="", pattern=r"^(https?://\S+)?$")


class Settings(BaseModel):
    """Start-up values; frozen, and strict about names."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    # ── serving ──────────────────────────────────────────────────────────────
    store: str = Field(default="memory:", pattern=r"^(sqlite:///.+|postgres(ql)?://.+|memory:)$")
    """Where state is kept: `sqlite:///PATH`, `postgresql://…` or `memory:`."""
    tools: Literal["agent", "all"] = "all"
    """Which tools are offered."""
    transport: Literal["stdio", "sse", "http", "all"] = "stdio"
    """How clients reach the server; `all` is HTTP and SSE, and stdio where a host started it."""
    host: str = Field(default="127.0.0.1", min_length=1)
    """The address to listen on; one that others can reach needs authentication."""
    port: int = Field(default=8000, ge=0, le=65_535)
    """The port to listen on; 0 takes a free one."""
    auth_token_file: Path | None = None
    """A file with the bearer tokens that HTTP clients must send, and whose each is."""
    auth_issuer: str = _URL
    """The OAuth authorization server whose access tokens are taken."""
    auth_resource: str = _URL
    """The address of this server's /mcp as its clients know it, which tokens must be made for."""
    auth_scopes: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Scopes that every access token must have."""
    auth_jwks_url: str = _URL
    """Where the issuer's keys are, for access tokens that are JWTs."""
    auth_introspection_url: str = _URL
    """Where the issuer says what an access token is worth, for tokens of any form."""
    auth_client_id: str = ""
    """Who this server is when it asks there."""
    auth_client_secret: SecretStr | None = None
    """The secret that goes with it."""
    allowed_hosts: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """More names by which clients reach this server, as a proxy passes them on in `Host`;
    `name:*` takes any port."""
    allowed_origins: Annotated[tuple[str, ...], BeforeValidator(_names)] = ()
    """Web origins besides its own whose pages may call this server."""
    max_request_bytes: int = Field(default=33_554_432, ge=1_024)
    """The largest request that is read; the Messages API takes 32 MB, and so do we."""
    shutdown_grace_seconds: float = Field(default=10.0, ge=0, le=3_600)
    """How long what is in flight may take once the server was asked to end."""
    session_id: str = Field(default="", max_length=200)
    """The session that the host says this process serves."""
    cache_bytes: int = Field(default=256_000_000, ge=0)
    """What sessions kept in memory may take together; others are read again when asked for."""
    log_level: Literal["debug", "info", "warning", "error"] = "info"
    """The least that is logged to stderr."""

    # ── files ────────────────────────────────────────────────────────────────
    allowed_roots: Annotated[tuple[Path, ...], BeforeValidator(_paths)] | None = None
    """Directories whose files may be read; None is the project's over stdio, none over HTTP."""
    memory_dir: Path | None = None
    """Where session memories are mirrored as Markdown files."""
    hooks_file: Path | None = None
    """The commands that run before and after a compaction and at session start."""
    host_tools_file: Path | None = None
    """More names of tools that read, write, plan and so on, by host."""
    redact: bool = True
    """Whether key-shaped strings are masked in what leaves the store."""

    # ── summaries ────────────────────────────────────────────────────────────
    summarizers: Annotated[tuple[Summarizer, ...], BeforeValidator(_names)] = (
        "sampling",
        "anthropic",
        "extractive",
    )
    """Which summarizers are tried, in this order. With `agent` first, a plain `compact` answers
    with the prompt for the calling model to write the summary itself."""
    summary_model: str = ""
    """The model that summarizes, where it is not the session's own."""
    summary_url: str = Field(default="", pattern=r"^(https?://.+)?$")
    """An OpenAI-compatible chat endpoint that summarizes."""
    summary_key: SecretStr | None = None
    """The key of that endpoint."""
    anthropic_api_key: SecretStr | None = None
    """For exact counts, and summaries by the API; usually `ANTHROPIC_API_KEY`."""

    # ── numbers ──────────────────────────────────────────────────────────────
    tool_search: str = Field(default="", pattern=r"^(|auto|auto:(\d\d?|100)|true|false)$")
    """When tools are deferred: `auto`, `auto:N` (percent of the window), `true` or `false`."""
    policy_overrides: dict[str, Any] = {}
    """Fields of the policy that were set, each valid."""
    warnings: tuple[str, ...] = ()
    """What was set and could not be used, a sentence each."""

    def policy(self) -> Policy:
        """The policy that sessions start from."""
        return Policy(**self.policy_overrides)


def from_environment(
    environ: Mapping[str, str],
    *,
    flags: Mapping[str, object] | None = None,
    data_dir: Path | None = None,
) -> Settings:
    """The settings in an environment, with a command line's `flags` over them.

    `data_dir` is where the default store lies, the user's data directory unless given.
    A flag that is None was not given; a bad one raises `InvalidInput`, since a person is
    there to correct it. So does a `MCP_CONTEXT_STORE` that no flag replaces.
    """
    ours = tuple(_ours(name) for name in sorted(environ) if name.startswith(PREFIX))
    settings: dict[str, Any] = {}
    policy: dict[str, Any] = {}
    warnings: list[str] = []
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    for variable in (*REFERENCE_VARIABLES, *ours):
        text = environ.get(variable.name, "").strip()
        target = policy if variable.field in Policy.model_fields else settings
        try:
            value = variable.read(text) if text else None
            if value is not None:
                target |= _checked(variable.field, value, policy)
        except (ValueError, RecursionError) as problem:
            if variable.field == "store" and not given.get("store"):
                message = f"{variable.name} can't be used. {HINTS['store']}"
                raise InvalidInput(message) from problem
            warnings.append(f"{_shown(variable, text)} is ignored: {_reason(problem)}")
    settings |= given
    settings["store"] = settings.get("store") or default_store(data_dir)
    try:
        return Settings(
            **settings, policy_overrides=policy, warnings=tuple(dict.fromkeys(warnings))
        )
    except ValidationError as problem:
        field = str(problem.errors()[0]["loc"][0])
        named = field if field in _MAY_HOLD_SECRETS else f"{field} {settings[field]!r}"
        message = f"{named} can't be used. {HINTS.get(field) or _reason(problem) + '.'}"
        raise InvalidInput(message) from problem


HINTS: Mapping[str, str] = {"store": "Use sqlite:///PATH, postgresql://… or memory: as the store."}
"""What to give instead, for flags whose form is not plain from the error."""


def default_store(data_dir: Path | None = None) -> str:
    """The URL of the store that is used where none is named."""
    if data_dir is None:
        from platformdirs import user_data_path

        data_dir = user_data_path("mcp-context-server", appauthor=False)
    return f"sqlite:///{data_dir / 'sessions.db'}"


# ── reading a variable ───────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Variable:
    """An environment variable, the field it sets, and how its text is read.

    `read` gives None where the text leaves the field alone, and raises ValueError where
    it can't be used.
    """

    name: str
    field: str
    read: Callable[[str], object]


_ON = frozenset({"1", "true", "yes", "on"})
_OFF = frozenset({"0", "false", "no", "off"})


def _is_on(text: str) -> bool:
    if text.lower() in _ON:
        return True
    if text.lower() in _OFF:
        return False
    message = "expected 1 or 0, true or false, yes or no, on or off"
    raise ValueError(message)


def _turns_on(text: str) -> bool | None:
    return True if _is_on(text) else None


def _turns_off(text: str) -> bool | None:
    return False if _is_on(text) else None


def _tokens(text: str) -> int:
    if not re.fullmatch(r"[0-9]{1,3}([_,]?[0-9]{1,3}){0,4}", text):
        message = "expected a number of tokens, like 150000"
        raise ValueError(message)
    return int(re.sub("[_,]", "", text))


def _percent(text: str) -> float:
    return float(text.removesuffix("%"))


def _tool_search(text: str) -> str:
    asked = text.lower()
    return "true" if asked in _ON else "false" if asked in _OFF else asked


def _as_written(text: str) -> object:
    """Text, or what it says where it is a JSON list or object."""
    return json.loads(text) if text.startswith(("[", "{")) else text


REFERENCE_VARIABLES = (
    Variable("DISABLE_COMPACT", "compact", _turns_off),
    Variable("DISABLE_COMPACT", "auto_compact", _turns_off),
    Variable("DISABLE_AUTO_COMPACT", "auto_compact", _turns_off),
    Variable("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "auto_compact_window_tokens", _tokens),
    Variable("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "auto_compact_percent", _percent),
    Variable("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "blocking_limit_tokens", _tokens),
    Variable("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "max_output_tokens", _tokens),
    Variable("CLAUDE_CODE_DISABLE_1M_CONTEXT", "allow_1m", _turns_off),
    Variable("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "file_read_tokens", _tokens),
    Variable("ENABLE_CLAUDE_CODE_SM_COMPACT", "session_memory_compact", _turns_on),
    Variable("DISABLE_CLAUDE_CODE_SM_COMPACT", "session_memory_compact", _turns_off),
    Variable("ENABLE_TOOL_SEARCH", "tool_search", _tool_search),
    Variable("CLAUDE_CODE_SESSION_ID", "session_id", str),
    Variable("ANTHROPIC_API_KEY", "anthropic_api_key", str),
)
"""The variables of the reference system and of its API; a later row wins."""


def _ours(name: str) -> Variable:
    return Variable(name, name.removeprefix(PREFIX).lower(), _as_written)


def _checked(field: str, value: object, policy: Mapping[str, Any]) -> dict[str, Any]:
    """The field with its value, once it is certain to be valid; raises ValueError if not."""
    if field in Policy.model_fields:
        return {field: getattr(Policy.model_validate({**policy, field: value}), field)}
    if field not in Settings.model_fields or field in ("policy_overrides", "warnings"):
        message = "there is no such setting"
        raise ValueError(message)
    return {field: getattr(Settings.model_validate({field: value}), field)}


def _shown(variable: Variable, text: str) -> str:
    """The variable as it was set, cut short; without its text where that may hold a secret."""
    if variable.field in _MAY_HOLD_SECRETS:
        return variable.name
    return f"{variable.name}={text[:_SHOWN_CHARS]!r}"


_SHOWN_CHARS = 60
_MAY_HOLD_SECRETS = (
    "store",
    "summary_url",
    "summary_key",
    "anthropic_api_key",
    "auth_client_secret",
)


def _reason(problem: Exception) -> str:
    if isinstance(problem, ValidationError):
        return problem.errors()[0]["msg"]
    return str(problem)
