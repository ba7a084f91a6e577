"""SWE-agent and mini-SWE-agent: `.traj` and `.traj.json`.

Both store a list of messages beside the steps that led to it. SWE-agent may
store the whole query again with each step, so only the one list is read; it
knows usage in total only. mini-SWE-agent keeps every response with its usage.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from mcp_context_server.core.messages import Message
from mcp_context_server.transcripts.base import (
    Described,
    Event,
    Format,
    Record,
    as_record,
    as_records,
    as_text,
    is_zero_usage,
)
from mcp_context_server.transcripts.chat import prepared
from mcp_context_server.transcripts.lines import decode_whole
from mcp_context_server.transcripts.openai_chat import to_messages
from mcp_context_server.transcripts.parts import appended, identified

MINI = "mini-swe-agent"


def parse(data: bytes) -> Sequence[Event]:
    value = decode_whole(data)
    trace = as_record(value)
    info = as_record(trace.get("info"))
    records = as_records(value) or _records(trace)
    told = Described(model=_model(info))
    messages = identified(_with_meta(to_messages([*prepared([*map(_plain, records)])])))
    return (*([told] if told != Described() else []), *appended(messages))


def _records(trace: Record) -> list[Record]:
    """The messages: the list of them, else what the steps say."""
    for name in ("messages", "history"):
        if records := [r for r in as_records(trace.get(name)) if "role" in r]:
            return records
    return [record for step in as_records(trace.get("trajectory")) for record in _step(step)]


def _step(step: Record) -> Iterator[Record]:
    reply = as_text(step.get("response")) or as_text(step.get("thought"))
    if reply:
        yield {"role": "assistant", "content": reply}
    if seen := as_text(step.get("observation")):
        yield {"role": "user", "content": seen}


def _plain(record: Record) -> dict[str, Any]:
    """A message with the usage and id of the response that it came with."""
    plain = {k: v for k, v in record.items() if k in ("role", "content", "tool_calls")}
    plain |= {k: record[k] for k in ("tool_call_id", "tool_call_ids", "timestamp") if k in record}
    if record.get("is_demo") is True:
        plain["is_meta"] = True
    response = as_record(as_record(record.get("extra")).get("response"))
    usage = as_record(response.get("usage"))
    if usage and not is_zero_usage(usage):
        plain |= {"usage": usage, "model": response.get("model")}
        plain["api_message_id"] = response.get("id")
    return plain


def _with_meta(messages: Sequence[Message]) -> Iterator[Message]:
    """What stands in the user's place after the first reply is what the tools said."""
    is_answered = False
    for message in messages:
        is_answered = is_answered or message.role == "assistant"
        is_seen = is_answered and message.role == "user"
        yield message.model_copy(update={"is_meta": message.is_meta or is_seen})


def _model(info: Record) -> str | None:
    model = as_record(as_record(info.get("config")).get("model"))
    return as_text(model.get("model_name"))


def _is_mini(records: Sequence[object], name: str) -> bool:
    trace = as_record(records[0]) if records else {}
    info = as_record(trace.get("info"))
    return "messages" in trace and (
        str(trace.get("trajectory_format", "")).startswith(MINI) or "mini_version" in info
    )


def _is_sweagent(records: Sequence[object], name: str) -> bool:
    trace = as_record(records[0]) if records else {}
    return isinstance(trace.get("trajectory"), list) or any(
        "message_type" in r or ("agent" in r and "role" in r)
        for r in as_records(trace.get("history"))
    )


MINI_SWE_AGENT = Format(
    name="mini-swe-agent", title="mini-SWE-agent trace", recognises=_is_mini, parse=parse
)
SWE_AGENT = Format(name="swe-agent", title="SWE-agent trace", recognises=_is_sweagent, parse=parse)
