"""Steps that failed, the line that says why, and what followed until they succeeded."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from mcp_context_server.core.summary.steps import Step, subject


@dataclass(frozen=True, slots=True)
class Failure:
    """A step that failed, and what followed until the same thing succeeded."""

    step: Step
    error: str
    fix: str
    """What the assistant said it would do about it."""
    changed: tuple[str, ...]
    """Files changed between the failure and its end."""
    is_fixed: bool


_ERROR_SIGNS: tuple[tuple[int, re.Pattern[str]], ...] = (
    (4, re.compile(r"(?:^|[\s(])[\w./\\-]{1,200}\.\w{1,8}[:(]\d+")),
    (3, re.compile(r"--- FAIL|^FAILED |✗|✘|^E  |\w(?:Error|Exception)\b|\berror(?:\[\w+\])?: \S")),
    (2, re.compile(r"(?i)\b(?:fatal|panic|undefined|denied|cannot|can't|not found|no such|refused"
                   r"|unexpected|mismatch|invalid|missing|timed? ?out|expected|rejected)\b")),
    (1, re.compile(r"(?i)\b(?:\w*error|\w*exception|failed|failure|fail)\b")),
)  # fmt: skip
"""What makes a line tell more of an error: a place in a file, a named failure, a reason, a word."""


_SCANNED_CHARS = 6_000


def failures(steps: Sequence[Step]) -> list[Failure]:
    """The newest steps that failed, each with what came of it, oldest first."""
    failed = [position for position, step in enumerate(steps) if step.has_failed]
    return [_failure(steps, position) for position in failed[-_MOST_FAILURES:]]


_MOST_FAILURES = 24


def error_line(text: str) -> str:
    """The line that says best what went wrong; of equals the first, of a traceback the last."""
    _, rejected, said = text[:_SCANNED_CHARS].partition(_REJECTED)
    if rejected:
        return f"{rejected} {said.strip()}"
    if len(text) > 2 * _SCANNED_CHARS:
        text = f"{text[:_SCANNED_CHARS]}\n{text[-_SCANNED_CHARS:]}"
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback") for line in lines):
        lines = [line for line in reversed(lines) if not line.startswith(("File ", "^", "~"))]
    return max(lines, key=_error_worth, default="")


_REJECTED = "the user said:"
"""Hosts put these words before what a person said when refusing a call."""


def _error_worth(line: str) -> int:
    line = line[:400]
    return sum(worth for worth, sign in _ERROR_SIGNS if sign.search(line))


def _failure(steps: Sequence[Step], position: int) -> Failure:
    step = steps[position]
    kind, changed, fix, is_fixed = subject(step.action), dict[str, None](), "", False
    for later in steps[position + 1 : position + 1 + _LOOK_AHEAD_STEPS]:
        if not fix and later.why and later.why != step.why:
            fix = later.why
        if later.action.role in ("edit", "write"):
            changed.update(dict.fromkeys(later.paths))
        if subject(later.action) == kind:
            is_fixed = not later.has_failed and later.outcome is not None
            if is_fixed:
                break
    outcome = step.outcome
    error = error_line(outcome.text) if outcome else ""
    return Failure(step, error, fix, tuple(changed), is_fixed)


_LOOK_AHEAD_STEPS = 25
