"""A text costs what its bytes cost, in linear time, and never more than them."""

import timeit

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from mcp_context_server.core.tokens.text_price import KINDS, TextPrice

EACH_KIND = TextPrice.of_kinds({kind: 1.0 for kind in KINDS})
WORDS = TextPrice.of_kinds({**{kind: 0.0 for kind in KINDS}, "word": 0.5})
LETTERS = TextPrice.of_kinds({**{kind: 0.0 for kind in KINDS}, "letter": 0.25})


@pytest.mark.parametrize(
    "character",
    ["a", "Z", "7", "_", "\n", " ", "\t", "é", "ж", "ع", "ก", "→", "か", "字", "글", "🙂"],
)
def test_every_character_has_the_price_of_its_kind_however_many_bytes_it_has(character: str):
    assert EACH_KIND.tokens(character * 100) == pytest.approx(100, rel=0.01)


@pytest.mark.parametrize("length", [0, 1, 255, 256, 257, 1_000_003])
def test_the_sum_is_exact_whatever_the_length(length: int):
    assert LETTERS.tokens("x" * length) == pytest.approx(length / 4)


def test_only_the_priced_kind_counts():
    assert LETTERS.tokens("ab12, cd\n" * 1_000) == pytest.approx(1_000)


@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("the quick brown fox", 4),
        ("THE_QUICK-brown2Fox", 4),
        ("camelCaseIsOneRun", 1),
        ("a" * 5_000, 1),
        ("12 {} 34\n\t", 0),
    ],
)
def test_a_word_is_a_run_of_letters_whatever_its_case(text: str, words: int):
    assert WORDS.tokens(text) == pytest.approx(words / 2)


@pytest.mark.timing
@pytest.mark.requirement("TOK-2")
@pytest.mark.parametrize("character", ["a", "{", " ", "a ", "\u0301", "😀", "\ud83d", "字"])
def test_a_hostile_text_takes_time_in_proportion_to_its_length(character: str):
    def seconds(length: int) -> float:
        text = character * length
        return min(timeit.repeat(lambda: EACH_KIND.tokens(text), number=1, repeat=7))

    assert seconds(800_000) < 8 * 4 * seconds(100_000)


@pytest.mark.requirement("TOK-2")
@given(st.text(st.characters(), max_size=600))
@example("\ud83d" * 300)
@example("\u0301" * 300)
@settings(max_examples=60)
def test_a_text_has_no_more_tokens_than_bytes(text: str):
    dear = TextPrice.of_kinds({kind: 3.0 for kind in KINDS})
    assert 0 <= dear.tokens(text) <= len(text.encode("utf-8", "surrogatepass"))
