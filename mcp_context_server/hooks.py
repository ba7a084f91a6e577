"""Hooks: commands of the settings file that run around a compaction and at a session's start.

    {"pre_compact": [{"command": ["notes", "--export"], "timeout_seconds": 10}]}

Each gets the event's facts as JSON on stdin. What it says on stdout, as text or as JSON
with `context`, goes on; one that fails is reported and changes nothing.
"""

import json
import logging
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mcp_context_server.errors import InvalidInput
from mcp_context_server.events import emit
from mcp_context_server.ports import HookEvent

_LOG = logging.getLogger("mcp_context_server.hooks")

OUTPUT_CHARS = 20_000
"""The most of a hook's output that is used."""


class Hook(BaseModel):
    """One command."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    command: tuple[str, ...] = Field(min_length=1)
    """The program and its arguments; no shell reads them."""
    timeout_seconds: float = Field(default=30, gt=0, le=600)


Hooks = Mapping[HookEvent, tuple[Hook, ...]]


def read_hooks(path: Path) -> Hooks:
    """The hooks of a settings file. Raises `InvalidInput` where it can't be used."""
    adapter = TypeAdapter[dict[HookEvent, tuple[Hook, ...]]](dict[HookEvent, tuple[Hook, ...]])
    try:
        return adapter.validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        message = f"The hooks file {str(path)!r} can't be used: {error}"
        raise InvalidInput(message) from error


@dataclass(frozen=True, slots=True)
class CommandHooks:
    """Runs the commands of a settings file."""

    hooks: Hooks

    async def __call__(self, event: HookEvent, facts: Mapping[str, Any]) -> Sequence[str]:
        """What the event's commands said, those that failed left out."""
        given = json.dumps({"event": event, **facts}, ensure_ascii=False).encode(
            "utf-8", "surrogatepass"
        )
        said = [await _run(hook, event, given) for hook in self.hooks.get(event, ())]
        return tuple(text for text in said if text)


async def _run(hook: Hook, event: HookEvent, given: bytes) -> str:
    try:
        with anyio.fail_after(hook.timeout_seconds):
            done = await anyio.run_process(
                hook.command, input=given, check=True, stderr=subprocess.DEVNULL
            )
    except TimeoutError:
        return _failed(hook, event, f"it took more than {hook.timeout_seconds:g} seconds")
    except (OSError, subprocess.CalledProcessError) as error:
        return _failed(hook, event, str(error))
    return _said(done.stdout.decode("utf-8", "replace")[:OUTPUT_CHARS].strip())


def _failed(hook: Hook, event: HookEvent, reason: str) -> str:
    _LOG.warning("the hook %s of %s failed: %s", hook.command[0], event, reason)
    emit("hook_failed", hook=hook.command[0], on=event, reason=reason)
    return ""


def _said(output: str) -> str:
    """The `context` of a JSON object, else the output as it is."""
    if output.startswith("{"):
        try:
            context = json.loads(output).get("context")
        except (ValueError, RecursionError):
            return output
        return context if isinstance(context, str) else ""
    return output
