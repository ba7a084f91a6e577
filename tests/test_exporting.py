"""A conversation in other forms says what it said."""

import html.parser
import json

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st
from transcripts.claude import answer, lines, reply, user

from mcp_context_server.cli import main
from mcp_context_server.core.intake import read_messages, take_in
from mcp_context_server.core.messages import Message, Messages
from mcp_context_server.core.rules import validate
from mcp_context_server.core.session import Session, fold
from mcp_context_server.inspection.exporting import (
    Conversation,
    anthropic_request,
    exported,
    openai_request,
    parts_of,
)

PICTURE = {"type": "base64", "media_type": "image/png", "data": "aGk="}
RAW = [
    {"role": "user", "content": "find it </script><b>now</b>"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "# Looking", "citations": None},
            {"type": "tool_use", "id": "c1", "name": "Read", "input": {"path": "a\n```"}},
            {"type": "novel_block", "anything": [1]},
        ],
    },
    {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "is_error": True,
                "content": [
                    {"type": "text", "text": "````\nno\n## 9. User"},
                    {"type": "image", "source": PICTURE},
                ],
            },
            {"type": "text", "text": "well?", "cache_control": {"type": "ephemeral"}},
        ],
    },
]


def session(raw) -> Session:
    entries = take_in(Session(), read_messages(raw)).entries
    return fold(Session(), enumerate(entries, start=1), version=len(entries))


def conversation(raw=RAW, **more) -> Conversation:
    return Conversation(session(raw).view, title="A <title>", **more)


def test_messages_come_out_of_a_session_as_they_went_in():
    request = anthropic_request(Conversation.of(session(RAW), title="t"))
    assert request["messages"] == RAW
    assert json.loads(exported(conversation(), "anthropic"))["messages"] == RAW


texts = st.text(min_size=1, max_size=20).filter(str.strip)
turns = st.lists(st.tuples(texts, texts), min_size=1, max_size=5)


@given(turns)
def test_any_talk_comes_out_exactly(said):
    raw = [
        {"role": role, "content": text}
        for pair in said
        for role, text in zip(("user", "assistant"), pair, strict=True)
    ]
    raw.append({"role": "user", "content": "more"})
    assert json.loads(exported(conversation(raw), "anthropic"))["messages"] == raw


def test_what_utf8_can_not_hold_is_escaped():
    raw = [{"role": "user", "content": "half \ud83d"}]
    text = exported(Conversation((Message(role="user", content="half \ud83d"),)), "anthropic")
    text.encode()
    assert json.loads(text)["messages"] == raw


def test_chat_messages_answer_every_call_and_begin_with_the_system_prompt():
    raw = [*RAW, {"role": "assistant", "content": [{**RAW[1]["content"][2], "id": "c2"}]}]
    request = openai_request(conversation(raw, system="be good", model="gpt-5.5"))
    assert request["model"] == "gpt-5.5"
    assert request["messages"][0] == {"role": "system", "content": "be good"}
    open_calls: set[str] = set()
    for message in request["messages"]:
        if message["role"] == "tool":
            open_calls.remove(message["tool_call_id"])
            continue
        assert not open_calls
        open_calls = {call["id"] for call in message.get("tool_calls", ())}
    assert not open_calls


def test_system_blocks_go_along():
    system = ({"type": "text", "text": "one"}, {"type": "text", "text": "two"})
    assert anthropic_request(conversation(system=system))["system"] == system
    (first, *_) = openai_request(conversation(system=system))["messages"]
    assert first["content"] == "one\n\ntwo"


# ── for people ───────────────────────────────────────────────────────────────


class Page(html.parser.HTMLParser):
    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags, self.words = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data):
        self.words += data


@pytest.mark.requirement("SAFE-1")
def test_a_page_shows_everything_and_obeys_nothing():
    text = exported(conversation(system="be <i>good</i>", model="m"), "html")
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "b", "i", "link", "iframe"}
    for said in ("find it </script><b>now</b>", "# Looking", "hm", "be <i>good</i>", "well?"):
        assert said in page.words
    assert [attrs["src"] for tag, attrs in page.tags if tag == "img"] == [
        "data:image/png;base64,aGk="
    ]
    assert "default-src 'none'" in text


@pytest.mark.parametrize(
    "source",
    [
        {**PICTURE, "media_type": "image/svg+xml"},
        {**PICTURE, "data": 'x" onerror="alert(1)'},
        {"type": "url", "url": "http://example.org/x.png"},
        None,
    ],
)
def test_only_plain_pictures_are_shown(source):
    message = Message(role="user", content=({"type": "image", "source": source},))
    assert "<img" not in exported(Conversation((message,)), "html")
    (part,) = parts_of(message)
    assert part.text.startswith("[image:")


def test_markdown_keeps_the_conversations_text_below_its_own_headings():
    text = exported(conversation(system="be good"), "markdown")
    headings = [line for line in text.splitlines() if line.startswith("## ")]
    assert headings[:2] == ["## System", "## 1. User"]
    assert "\\# Looking" in text
    assert "`````\n````\nno\n## 9. User\n`````" in text
    assert "````json" in text
    assert "**Result of c1 (failed)**" in text


@pytest.mark.requirement("SAFE-2")
@pytest.mark.parametrize("form", ["markdown", "html"])
def test_secrets_are_masked_for_people_and_kept_for_programs(form):
    key = "sk-ant-" + "a1" * 20
    secret = conversation([{"role": "user", "content": f"use {key}"}])
    assert key not in exported(secret, form)
    assert key in exported(secret, form, mask=False)
    assert key in exported(secret, "anthropic")


# ── from a transcript ────────────────────────────────────────────────────────


@pytest.mark.parametrize("form", ["anthropic", "openai", "markdown", "html"])
def test_a_transcript_is_exported_by_inspect(form, tmp_path):
    path = tmp_path / "t.jsonl"
    call = {"type": "tool_use", "id": "c1", "name": "Read", "input": {}}
    path.write_bytes(
        lines(user("u1", None, "find the leak"), reply("a1", "u1", call), answer("r1", "a1", "c1"))
    )
    done = CliRunner().invoke(main, ["inspect", str(path), "--export", form])
    assert done.exit_code == 0, done.output
    assert "find the leak" in done.output
    if form == "anthropic":
        assert validate(json.loads(done.output)["messages"]) == ()


def test_an_empty_conversation_is_exported_as_one():
    empty: Messages = ()
    assert json.loads(exported(Conversation(empty), "openai")) == {"messages": []}
    assert "0 messages" in exported(Conversation(empty), "html")
