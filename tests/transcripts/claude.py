"""Synthetic Claude Code records, linked as the host links them."""

import json

SESSION = "5e551014-0000-4000-8000-000000000001"
PROMPT = {"input_tokens": 4, "cache_creation_input_tokens": 96, "cache_read_input_tokens": 900}


def record(kind, id, parent=None, **more):
    envelope = {
        "parentUuid": parent,
        "isSidechain": False,
        "sessionId": SESSION,
        "cwd": "/proj/app",
        "version": "2.1.42",
        "type": kind,
        "uuid": id,
        "timestamp": "2026-01-02T03:04:05.000Z",
    }
    return {**envelope, **more}


def user(id, parent, content, **more):
    return record("user", id, parent, message={"role": "user", "content": content}, **more)


def answer(id, parent, call, content="ok", **more):
    block = {"type": "tool_result", "tool_use_id": call, "content": content}
    return user(id, parent, [block], toolUseResult={"stdout": "x" * 500}, **more)


def reply(id, parent, block, *, of=None, usage=None, stop=None, model="claude-opus-4-6", **more):
    content = [{"type": "text", "text": block}] if isinstance(block, str) else [block]
    inner = {
        "id": of or f"msg_{id}",
        "role": "assistant",
        "model": model,
        "content": content,
        "stop_reason": stop,
        "usage": PROMPT | {"output_tokens": 3} if usage is None else usage,
    }
    return record("assistant", id, parent, message=inner, **more)


def call(id, name="Read"):
    return {"type": "tool_use", "id": id, "name": name, "input": {}}


def attachment(id, parent, kind, **fields):
    return record("attachment", id, parent, attachment={"type": kind, **fields})


def boundary(id, old_leaf, **metadata):
    metadata = {"trigger": "auto", "preTokens": 167000, **metadata}
    return record(
        "system",
        id,
        None,
        logicalParentUuid=old_leaf,
        subtype="compact_boundary",
        compactMetadata=metadata,
    )


def summary(id, parent, text):
    more = {"isCompactSummary": True, "isVisibleInTranscriptOnly": True}
    return user(id, parent, text, **more)


def lines(*records):
    return b"".join(json.dumps(item).encode() + b"\n" for item in records)
