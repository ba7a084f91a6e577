"""The thresholds a hook needs, worked out by the core once and kept.

The core's window and policy take longer to import than a hook may take. So their figures
for a model are kept under a digest of all that they depend on.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Literal
from zlib import crc32

from mcp_context_server import __version__
from mcp_context_server.hosts.hooks.state import State

KIND = "figures"
VARIABLES = (
    "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
    "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE",
    "CLAUDE_CODE_DISABLE_1M_CONTEXT",
    "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
    "DISABLE_AUTO_COMPACT",
    "DISABLE_CLAUDE_CODE_SM_COMPACT",
    "DISABLE_COMPACT",
    "ENABLE_CLAUDE_CODE_SM_COMPACT",
)
"""The reference system's variables that the figures depend on, beside all of ours."""
OUR_PREFIX = "MCP_CONTEXT_"
SOURCES = ("models.toml", "policy.py", "window.py")
"""Files of the core that the figures come from."""

Level = Literal["ok", "warning", "auto_compact", "blocking"]


@dataclass(frozen=True, slots=True)
class Figures:
    """A model's window and thresholds, and the policy's numbers for hooks; tokens throughout."""

    context_window: int
    effective_window: int
    warning: int
    auto_compact: int
    blocking: int
    memory_again_calls: int
    hook_memory_tokens: int
    hook_named_files: int

    def level(self, used_tokens: int) -> Level:
        if used_tokens >= self.blocking:
            return "blocking"
        if used_tokens >= self.auto_compact:
            return "auto_compact"
        return "warning" if used_tokens >= self.warning else "ok"

    def percent(self, used_tokens: int) -> int:
        """The share of the effective window in use, a whole number from 0 to 100."""
        return min(100, max(0, round(100 * used_tokens / self.effective_window)))


def figures(
    model: str, window_tokens: int | None, environ: Mapping[str, str], state: State
) -> Figures:
    """The figures for a model, whose window the host may know better than we do."""
    key = _key(model, window_tokens, environ)
    kept = state.read(KIND, key)
    names = {field.name for field in fields(Figures)}
    if kept.keys() == names and all(isinstance(value, int) for value in kept.values()):
        return Figures(**kept)
    worked_out = work_out(model, window_tokens, environ)
    state.keep(KIND, key, asdict(worked_out))
    return worked_out


def work_out(model: str, window_tokens: int | None, environ: Mapping[str, str]) -> Figures:
    """The figures as the core has them."""
    from mcp_context_server.core.window import window
    from mcp_context_server.settings import from_environment

    policy = from_environment(environ).policy()
    # A host's own figure for its window is as good as a limit learned from its provider.
    bounds = window(model, policy, learned_tokens=window_tokens)
    return Figures(
        context_window=bounds.context_window,
        effective_window=bounds.effective_window,
        warning=bounds.warning,
        auto_compact=bounds.auto_compact,
        blocking=bounds.blocking,
        memory_again_calls=policy.memory_again_calls,
        hook_memory_tokens=policy.hook_memory_tokens,
        hook_named_files=policy.hook_named_files,
    )


def _key(model: str, window_tokens: int | None, environ: Mapping[str, str]) -> str:
    core = Path(__file__).parents[2] / "core"
    stamps = [(core / name).stat().st_mtime_ns for name in SOURCES]
    ours = sorted(name for name in environ if name.startswith(OUR_PREFIX))
    told = [(name, environ.get(name)) for name in (*VARIABLES, *ours)]
    facts = repr((__version__, stamps, model, window_tokens, told)).encode("utf-8", "surrogatepass")
    # Two checksums do, of few entries; `hashlib` takes as long to import as all the rest.
    return f"{crc32(facts):08x}{crc32(facts[::-1]):08x}"
