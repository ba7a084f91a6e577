"""Builders and strategies: how tests say what a conversation looks like."""

import base64
import struct
from itertools import count

from hypothesis import strategies as st

from mcp_context_server.core.messages import Message, Messages


def png(width: int, height: int) -> str:
    """The base64 of a PNG's first bytes: signature and header, with this size in pixels."""
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(
        ">I4sII5B", 13, b"IHDR", width, height, 8, 2, 0, 0, 0
    )
    return base64.b64encode(header + b"\0\0\0\0").decode()


def text(value: str) -> dict:
    return {"type": "text", "text": value}


def image(width: int = 640, height: int = 480) -> dict:
    source = {"type": "base64", "media_type": "image/png", "data": png(width, height)}
    return {"type": "image", "source": source}


def call(id: str, name: str = "Read", **arguments: object) -> dict:
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id: str, content: object = "ok", **more: object) -> dict:
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


def user(*blocks: object, id: str = "", **more: object) -> Message:
    return _message("user", blocks, id, more)


def assistant(*blocks: object, id: str = "", **more: object) -> Message:
    return _message("assistant", blocks, id, more)


def _message(role: str, blocks: tuple, id: str, more: dict) -> Message:
    content = blocks[0] if len(blocks) == 1 and isinstance(blocks[0], str) else tuple(blocks)
    return Message(id=id, role=role, content=content, **more)


Turn = list[tuple[str, tuple]]


def _prompt(n: int, value: str) -> Turn:
    return [("user", (value,))]


def _reply(n: int, value: str) -> Turn:
    return [("assistant", (value,))]


def _tool(n: int, value: str) -> Turn:
    found = ("line of text\n" * (int(value) // 13 + 1))[: int(value)]
    return [
        ("assistant", (call(f"c{n}", file_path=f"/src/f{n}.py"),)),
        ("user", (result(f"c{n}", found),)),
    ]


def _parallel(n: int, value: str) -> Turn:
    each = range(int(value))
    calls = (call(f"c{n}_{i}", "Grep", pattern=f"p{i}") for i in each)
    return [
        ("assistant", (text("looking"), *calls)),
        ("user", tuple(result(f"c{n}_{i}", f"match {i}") for i in each)),
    ]


def _open(n: int, value: str) -> Turn:
    return [("assistant", (call(f"c{n}", "Bash", command="sleep 1"),))]


def _server_side(n: int, value: str) -> Turn:
    id = f"srvtoolu_{n}"
    use = {"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "q"}}
    hit = {"type": "web_search_result", "encrypted_content": "AAAA" * 50}
    found = {"type": "web_search_tool_result", "tool_use_id": id, "content": [hit]}
    return [("assistant", (use, found, text("found it")))]


def _thinking(n: int, value: str) -> Turn:
    thought = {"type": "thinking", "thinking": "h" * int(value), "signature": "c2ln" * 20}
    return [("assistant", (thought, text("thought")))]


def _redacted(n: int, value: str) -> Turn:
    return [("assistant", ({"type": "redacted_thinking", "data": "cmVk" * 30}, text("thought")))]


def _image(n: int, value: str) -> Turn:
    return [("user", (text("see"), image()))]


def _picture(n: int, value: str) -> Turn:
    return [
        ("assistant", (call(f"c{n}", file_path="/a.png"),)),
        ("user", (result(f"c{n}", [text("a picture"), image(1200, 900)]),)),
    ]


def _unknown(n: int, value: str) -> Turn:
    return [("assistant", ({"type": "hologram", "payload": {"depth": 3}}, text("new")))]


def _mixed(n: int, value: str) -> Turn:
    thought = {"type": "thinking", "thinking": f"h{n}", "signature": "c2ln" * 20}
    calls = (call(f"c{n}_0", "Bash", command="make"), call(f"c{n}_1", file_path=f"/m{n}.py"))
    found = (result(f"c{n}_0", "made\n" * int(value)), result(f"c{n}_1", "line\n" * int(value)))
    return [("assistant", (thought, text("both"), *calls)), ("user", (*found, text("and go on")))]


ODD_CONTENTS = {
    "empty": {"content": ""},
    "blank": {"content": " \n\t"},
    "nothing": {"content": []},
    "missing": {},
    "failed": {"content": "no such file", "is_error": True},
    "texts": {"content": [text("a"), text("b" * 400)]},
    "unknown": {"content": [text("new"), {"type": "hologram", "depth": {"of": [1, 2]}}]},
    "surrogate": {"content": "\udcff" * 50},
    "marker": {"content": "[Old tool result content cleared] Read (/x), 9 tokens" * 20},
    "base64": {"content": "iVBORw0KGgoAAAANSUhEUg" * 200},
}


def _odd(n: int, value: str) -> Turn:
    found = {"type": "tool_result", "tool_use_id": f"c{n}", **ODD_CONTENTS[value]}
    return [("assistant", (call(f"c{n}", "lookup", of=[n, None, {}]),)), ("user", (found,))]


TURNS = {
    "u": _prompt,  # "u:hi"   a person's prompt
    "a": _reply,  # "a:yo"   a reply
    "t": _tool,  # "t:300"  a call (Read) and its result of 300 characters
    "p": _parallel,  # "p:3"    three parallel calls (Grep) and their short results
    "o": _open,  # "o:"     a call that nothing answers
    "s": _server_side,  # "s:"     a server-side call with its result
    "k": _thinking,  # "k:300"  a reply with 300 characters of thinking before its text
    "r": _redacted,  # "r:"     a reply with redacted thinking
    "i": _image,  # "i:"     a prompt with an image
    "d": _picture,  # "d:"     a call whose result holds an image
    "m": _mixed,  # "m:40"   thinking, text and two calls in one reply, text behind the results
    "e": _odd,  # "e:blank" a call whose result holds what few expect (see ODD_CONTENTS)
    "x": _unknown,  # "x:"     a reply with a block of unknown type
}


def conversation(*turns: str) -> Messages:
    """Messages m0, m1… of these turns (see TURNS); calls are c0, c1… by the turn's position."""
    ids, messages = count(), []
    for n, turn in enumerate(turns):
        kind, _, value = turn.partition(":")
        for role, blocks in TURNS[kind](n, value):
            messages.append(_message(role, blocks, f"m{next(ids)}", {}))
    return tuple(messages)


_turns = st.one_of(
    st.integers(0, 3000).map(lambda n: f"t:{n}"),
    st.integers(1, 5).map(lambda n: f"p:{n}"),
    st.integers(1, 400).map(lambda n: f"k:{n}"),
    st.integers(0, 200).map(lambda n: f"m:{n}"),
    st.sampled_from([f"e:{kind}" for kind in ODD_CONTENTS]),
    st.sampled_from(
        [
            "s:",
            "r:",
            "i:",
            "x:",
            "d:",
            "u:go on",
            "u:日本語でお願いします",
            "a:done",
            "a:" + "y" * 400,
        ]
    ),
)
turn_lists = st.lists(_turns, min_size=1, max_size=25)


def _alternating(turns: list[str]) -> Messages:
    """A legal conversation of these turns: a prompt between two replies, and at the start."""
    spoken: list[str] = ["u:start"]
    for turn in turns:
        if turn[0] in "ui" and spoken[-1][0] in "uitpdme":
            spoken.append("a:noted")
        if turn[0] not in "ui" and spoken[-1][0] in "aksrx":
            spoken.append("u:and then?")
        spoken.append(turn)
    return conversation(*spoken)


conversations = turn_lists.map(_alternating)
"""Legal conversations: parallel and server-side calls, thinking, images, odd results."""

open_conversations = conversations.map(
    lambda view: (
        (*view, assistant(call("open", "Bash", command="make"), id="open"))
        if view[-1].role == "user"
        else view
    )
)
"""The same, some with a call at the end that nothing has answered yet."""
