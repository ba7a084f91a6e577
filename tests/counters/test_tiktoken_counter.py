"""Exact counts on this machine: what is counted, and that nothing is ever fetched for it."""

import sys
from pathlib import Path

import pytest
from conversations import assistant, call, user

from mcp_context_server.counters.tiktoken import (
    PIECE_CHARS,
    VOCABULARIES,
    TiktokenCounter,
    local_encoding,
    pieces,
)
from mcp_context_server.errors import CountUnavailable
from mcp_context_server.ports import Countable

pytestmark = pytest.mark.anyio


class Words:
    """An encoding of a token a word."""

    def encode_ordinary(self, text: str) -> list[int]:
        return [len(word) for word in text.split()]


def counter(asked: list[str] | None = None) -> TiktokenCounter:
    def load(name: str) -> Words:
        if asked is not None:
            asked.append(name)
        return Words()

    return TiktokenCounter(load=load)


async def test_a_text_has_the_tokens_of_its_encoding():
    assert await counter().count(Countable(model="gpt-5", text="one two three")) == 3
    long = Countable(model="gpt-5", text="word " * PIECE_CHARS)
    assert await counter().count(long) == PIECE_CHARS


async def test_messages_of_text_cost_their_texts_and_four_tokens_each():
    messages = (user("one two"), assistant("three"))
    assert await counter().count(Countable(model="gpt-5", messages=messages)) == 3 + 2 * 4


@pytest.mark.parametrize(
    "more", [{"messages": (user("go"), assistant(call("c1")))}, {"tools": ({"name": "Read"},)}]
)
async def test_what_no_tokenizer_tells_is_not_counted(more: dict):
    with pytest.raises(CountUnavailable, match="not public"):
        await counter().count(Countable(model="gpt-5", **more))


@pytest.mark.parametrize(
    ("model", "encoding"),
    [
        ("gpt-5.4", "o200k_base"),
        ("openai/gpt-4o", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("gpt-4", "cl100k_base"),
        ("gpt-3.5-turbo-0125", "cl100k_base"),
    ],
)
async def test_every_model_has_its_own_encoding(model: str, encoding: str):
    asked: list[str] = []
    assert counter().serves(model)
    await counter(asked).count(Countable(model=model, text="hi"))
    assert asked == [encoding]


@pytest.mark.parametrize("model", ["claude-opus-4-5", "gemini-2.5-pro", "some-model", ""])
def test_models_of_others_are_left_to_others(model: str):
    assert not counter().serves(model)


@pytest.mark.parametrize("name", VOCABULARIES)
@pytest.mark.parametrize("content", [None, b"", b"IQ== 0\n"])
def test_what_is_not_here_or_is_damaged_is_told_and_left_as_it_is(
    name: str, content: bytes | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    file = tmp_path / VOCABULARIES[name].cache_key
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(CountUnavailable, match="on this machine"):
        local_encoding(name)
    assert "tiktoken" not in sys.modules
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [content] * (content is not None)


def test_with_its_cache_turned_off_tiktoken_is_not_asked(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", "")
    with pytest.raises(CountUnavailable, match="not on this machine"):
        local_encoding("o200k_base")


@pytest.mark.parametrize("text", ["", "a", "x" * 250_001, "many words " * 30_000, " " * 300_000])
def test_the_pieces_of_a_text_are_bounded_and_join_to_it(text: str):
    cut = list(pieces(text))
    assert "".join(cut) == text
    assert max(map(len, cut)) <= PIECE_CHARS
