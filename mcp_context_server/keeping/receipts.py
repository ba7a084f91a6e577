"""Appends that are applied once: what is kept under a key, and read when it comes again."""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from mcp_context_server.core.intake import Intake
from mcp_context_server.core.messages import Messages
from mcp_context_server.errors import InvalidInput, brief
from mcp_context_server.ports import Receipt

META_KEYS = ("mcp-context-server/idempotencyKey", "claudecode/toolUseId")
"""Where a call's `_meta` names the call itself, however often it is sent."""


def key_in(meta: Mapping[str, Any]) -> str:
    """The key that a call carries in its `_meta`; empty where it carries none."""
    named = ((name, meta.get(name)) for name in META_KEYS)
    return next((f"{name}:{key}" for name, key in named if isinstance(key, str) and key), "")


def receipt_of(key: str, digest: str, intake: Intake, version: int) -> Receipt:
    """The receipt of an append that brings its session to a version."""
    told = {
        "digest": digest,
        "version": version,
        "message_ids": intake.message_ids,
        "notes": intake.notes,
        "known": intake.known,
        "spilled": intake.spilled,
    }
    return Receipt(key, json.dumps(told, separators=(",", ":")))


def redeemed(key: str, digest: str, answer: str) -> Intake:
    """What the first append with this key came to. Raises `InvalidInput` for another append."""
    told = json.loads(answer)
    if told["digest"] != digest:
        message = (
            f"The idempotency key {brief(key)} belongs to another append; nothing was appended. "
            "Give each append a key of its own, and the same one only to repeat it."
        )
        raise InvalidInput(message)
    return Intake(
        entries=(),
        message_ids=tuple(told["message_ids"]),
        notes=tuple(told["notes"]),
        known=tuple(told["known"]),
        spilled=tuple(told["spilled"]),
        applied_at=told["version"],
    )


def digest_of(messages: Messages, usage: Mapping[str, Any] | None) -> str:
    """What tells one append from another."""
    told = [[m.model_dump(exclude_unset=True) for m in messages], usage]
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()
