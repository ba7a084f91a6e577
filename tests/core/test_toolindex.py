import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.policy import ToolRanking
from mcp_context_server.core.toolsearch.index import ToolIndex, ToolText
from mcp_context_server.core.toolsearch.meanings import BIAS, DIMENSIONS, Meanings, meanings

RANKING = ToolRanking()


def index(*tools: ToolText, ranking: ToolRanking = RANKING) -> ToolIndex:
    made = ToolIndex(ranking)
    for tool in tools:
        made.add(tool)
    return made


def row(*values: int) -> bytes:
    """A vector's bytes from its first dimensions, the others 0."""
    return bytes([BIAS + v for v in values] + [BIAS] * (DIMENSIONS - len(values)))


def test_a_rare_word_weighs_more_than_a_common_one():
    tools = [ToolText(f"t{n}", description="Read a file.") for n in range(9)]
    made = index(*tools, ToolText("t9", description="Read a barcode."))
    assert made.rank("file barcode")[0] == 9


def test_a_word_in_the_name_weighs_more_than_one_in_a_parameter():
    made = index(ToolText("other", parameters="invoice"), ToolText("invoice_get"))
    assert made.rank("invoice") == [1, 0]


def test_saying_a_word_many_times_soon_counts_no_more():
    spam = ToolText("x", description="invoice " * 1000)
    made = index(spam, ToolText("y", description="Cancel an invoice."))
    assert made.rank("cancel invoice")[0] == 1


def test_a_name_of_which_the_query_has_every_word_comes_first():
    made = index(ToolText("send_email_to_contact_list"), ToolText("send_email"))
    assert made.rank("send email")[0] == 1


def test_a_server_s_third_tool_makes_room_for_another_s():
    tools = [*(ToolText(f"page_fetch_{n}", "crawl") for n in "kmnp"), ToolText("page_fetch_q", "x")]
    level = ToolRanking(sense_share=0)
    assert index(*tools, ranking=level).rank("page fetch") == [0, 1, 4, 2, 3]
    crowded = ToolRanking(sense_share=0, server_crowding=0)
    assert index(*tools, ranking=crowded).rank("page fetch") == [0, 1, 2, 3, 4]


def test_words_near_in_sense_order_what_the_words_alone_leave_level():
    tools = (
        ToolText("show_one", description="The stapler of the office"),
        ToolText("show_two", description="The rainfall of the region"),
    )
    assert index(*tools).rank("show weather") == [1, 0]
    assert index(*tools, ranking=ToolRanking(sense_share=0)).rank("show weather") == [0, 1]


def test_where_no_word_occurs_tools_near_in_sense_are_found():
    made = index(ToolText("photo_camera"), ToolText("bank_loan"), ToolText("song_melody"))
    assert made.rank("a musical tune") == [2]
    assert made.rank("a musical tune", without={2}) == []
    assert made.rank("a musical tune", among={0, 1}) == []
    assert made.rank("qwxz") == []


def test_documents_may_be_limited_and_left_out():
    made = index(*(ToolText(f"file_{n}") for n in range(4)))
    assert made.rank("file", among={1, 2, 3}, without={2}) == [1, 3]


def test_a_query_of_stop_words_finds_the_name_made_of_them():
    assert index(ToolText("get_it"), ToolText("who_am_i")).rank("who am I") == [1]


def test_a_stop_word_counts_a_little_where_a_name_has_it():
    tools = ToolText("find_tweet"), ToolText("like_tweet")
    a_little, nothing = ToolRanking(sense_share=0), ToolRanking(sense_share=0, stop_word_weight=0)
    assert index(*tools, ranking=a_little).rank("I would like a tweet") == [1, 0]
    assert index(*tools, ranking=nothing).rank("I would like a tweet") == [0, 1]


def test_neighbouring_words_are_found_as_one_in_any_form():
    made = index(ToolText("list_people"), ToolText("list_oncalls"))
    assert made.rank("list who is on call")[0] == 1


@given(st.lists(st.text(max_size=30), min_size=1, max_size=6), st.text(max_size=40))
@settings(max_examples=60)
def test_any_tools_can_be_indexed_and_any_query_ranked(texts: list[str], query: str):
    made = index(*(ToolText(text, text, text, text, text, text) for text in texts))
    found = made.rank(query)
    assert len(set(found)) == len(found)
    assert set(found) <= set(range(len(texts)))


def test_adding_one_by_one_is_the_same_as_adding_all():
    tools = [ToolText(f"{verb}_{noun}") for verb in ("get", "set") for noun in ("user", "file")]
    grown = ToolIndex(RANKING)
    for tool in tools:
        grown.add(tool)
        grown.rank("user fiel")
    assert grown.rank("get user fiel") == index(*tools).rank("get user fiel")


def test_a_direction_is_the_weighted_sum_of_known_words():
    table = Meanings(["cat", "dog"], row(30, 40) + row(0, 10))
    direction = table.direction([(["cat", "unknown"], 1), (["dog"], 2)])
    assert direction is not None
    assert direction.values[:2] == pytest.approx((30 / 67.0820393, 60 / 67.0820393))
    assert set(direction.values[2:]) == {0.0}
    assert ("cat" in table, "unknown" in table) == (True, False)


def test_nearness_is_the_cosine_but_for_rounding():
    table = Meanings(["east", "west", "north"], row(100) + row(-100) + row(0, 100))
    east = table.direction([(["east"], 1)])
    assert east is not None
    near = [east.nearness(table.packed([([stem], 1)])) for stem in ("east", "west", "north")]
    assert near == pytest.approx([1, -1, 0], abs=0.01)
    assert east.nearness(b"") == 0


def test_unknown_words_and_words_that_cancel_out_have_no_direction():
    table = Meanings(["east", "west"], row(100) + row(-100))
    for stems in (["unknown"], [], ["east", "west"]):
        assert table.direction([(stems, 1)]) is None
        assert table.packed([(stems, 1)]) == b""


def test_a_long_text_adds_up_without_overflow():
    table = Meanings(["far"], row(*[127] * DIMENSIONS))
    long = table.direction([(["far"] * 20_000, 10)])
    assert long is not None
    assert long.values == pytest.approx([1 / 8] * DIMENSIONS)


@pytest.mark.parametrize(
    ("word", "near", "far"),
    [
        ("delet", "remov", "weather"),
        ("photo", "imag", "invoic"),
        ("hotel", "restaur", "databas"),
        ("song", "music", "server"),
    ],
)
def test_the_table_knows_which_words_are_near(word: str, near: str, far: str):
    direction = meanings().direction([([word], 1)])
    assert direction is not None
    nearness = {
        other: direction.nearness(meanings().packed([([other], 1)])) for other in (near, far)
    }
    assert nearness[near] > nearness[far] + 0.2


def test_the_table_is_whole():
    lanes = meanings()
    assert all(stem in lanes for stem in ("file", "email", "search", "weather", "repositori"))
