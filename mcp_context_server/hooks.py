"""Hooks: commands of the settings file that run around a compaction and at a session's start.

    {"pre_compact": [{"command": ["notes", "--export"], "timeout_seconds": 10}]}

Each gets the event's facts as JSON on stdin. What it says on stdout, as text or as JSON
with `context`, goes on; one that fails is reported and changes nothing.
"""

import json
import logging
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from mcp_context_server.errors import InvalidInput
from mcp_context_server.events import emit
from mcp_context_server.ports import HookEvent

_LOG = logging.getLogger("mcp_context_server.hooks")

OUTPUT_CHARS = 20_000
"""The most of a hook's output that is used."""
_OUTPUT_BYTES = OUTPUT_CHARS * 4


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
            code, output = await _ran(hook.command, given)
    except TimeoutError:
        return _failed(hook, event, f"it took more than {hook.timeout_seconds:g} seconds")
    except OSError as error:
        return _failed(hook, event, str(error))
    if code:
        return _failed(hook, event, f"it ended with exit code {code}")
    return _said(output.decode("utf-8", "replace")[:OUTPUT_CHARS].strip())


async def _ran(command: Sequence[str], given: bytes) -> tuple[int, bytes]:
    """A command's exit code and the beginning of its output; it need not read what it is given."""
    stderr = subprocess.DEVNULL
    async with await anyio.open_process(command, stderr=stderr) as process:
        assert process.stdin
        assert process.stdout
        output = b""
        async with anyio.create_task_group() as group:
            group.start_soon(_feed, process.stdin, given)
            output = await _beginning(process.stdout)
        return await process.wait(), output


async def _feed(stdin: ByteSendStream, given: bytes) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        async with stdin:
            await stdin.send(given)


async def _beginning(stdout: ByteReceiveStream) -> bytes:
    """What is used of an output; the rest is read and dropped, so that its writer can end."""
    kept = bytearray()
    async for part in stdout:
        kept += part[: max(0, _OUTPUT_BYTES - len(kept))]
    return bytes(kept)


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
