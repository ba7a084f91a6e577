"""Builders for the tests of faults: conversations of the kind that hurt, and their judge."""

from conversations import assistant, call, image, result, text, user
from hunting import examples
from hypothesis import HealthCheck, settings
from sessions import MOMENT, result_blocks, turn_for

from mcp_context_server.core.intake import take_in
from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import Session, fold

SMALL = {"context_window_tokens": 16_000}
TIGHT = {**SMALL, "auto_compact_cap_tokens": 300, "keep_recent": 1}
modest = settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)

THOUGHT = {"type": "thinking", "thinking": "h" * 5_000, "signature": "c2ln" * 40}
REDACTED = {"type": "redacted_thinking", "data": "cmVk" * 40}


def faults(view):
    return validate([message.wire() for message in view], open_tail=True)


def planned_view(view, **options):
    return plan(turn_for(view, **options)).session.view


def taken_in(*messages) -> Session:
    """The session that these messages make once they are made legal."""
    entries = take_in(Session(), messages).entries
    return fold(Session(), enumerate(entries, 1), version=len(entries))


def cleared(view) -> list[str]:
    return [
        id for id, block in result_blocks(view).items() if str(block["content"]).startswith(CLEARED)
    ]


def shots(count: int, *, width: int = 640, base64_chars: int = 0):
    block = image(width, 480)
    data = block["source"]["data"].ljust(base64_chars, "A")
    block = {**block, "source": {**block["source"], "data": data}}
    view = [user("look", id="p")]
    for n in range(count):
        view.append(assistant(call(f"c{n}", file_path=f"/shots/{n}.png"), id=f"a{n}"))
        view.append(user(result(f"c{n}", [text(f"shot {n}"), block]), id=f"r{n}"))
    return (*view, assistant("seen", id="z"), user("and?", id="q"))


def words(size: int) -> str:
    return "some words of a result\n" * (size // 23)


def readings(count: int, size: int, *, stamp: str | None = MOMENT.iso, tool: str = "Read"):
    view = [user("go", id="p")]
    for n in range(count):
        view.append(assistant(call(f"c{n}", tool, file_path=f"/f{n}"), id=f"a{n}"))
        view.append(user(result(f"c{n}", words(size)), id=f"r{n}"))
    reply = assistant("ok", id="z", **({"timestamp": stamp} if stamp else {}))
    return (*view, reply, user("more", id="q"))
