import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.toolsearch.spelling import Spelling, is_one_slip
from mcp_context_server.core.toolsearch.stemmer import stem
from mcp_context_server.core.toolsearch.words import compounds, parts, squash, terms


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("caresses", "caress"),
        ("ponies", "poni"),
        ("cats", "cat"),
        ("feed", "feed"),
        ("agreed", "agre"),
        ("plastered", "plaster"),
        ("sing", "sing"),
        ("conflated", "conflat"),
        ("hopping", "hop"),
        ("falling", "fall"),
        ("filing", "file"),
        ("happy", "happi"),
        ("relational", "relat"),
        ("vietnamization", "vietnam"),
        ("triplicate", "triplic"),
        ("hopefulness", "hope"),
        ("adjustment", "adjust"),
        ("adoption", "adopt"),
        ("rate", "rate"),
        ("controller", "control"),
        ("go", "go"),
        ("", ""),
    ],
)
def test_english_words_are_cut_to_their_stems(word: str, expected: str):
    assert stem(word) == expected


def test_forms_of_one_word_share_a_stem():
    assert {stem(w) for w in ("create", "creates", "created", "creating")} == {"creat"}
    assert {stem(w) for w in ("list", "lists", "listed", "listing", "listings")} == {"list"}


@pytest.mark.parametrize(
    "name", ["readTextFile", "read_text_file", "Read-Text-File", "READ TEXT FILE"]
)
def test_spellings_of_one_name_have_the_same_parts(name: str):
    assert parts(name) == ["read", "text", "file"]
    assert squash(name) == "readtextfile"


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("HTTPServer", ["http", "server"]),
        ("getS3Object", ["get", "s3", "object"]),
        ("base64_encode", ["base64", "encode"]),
        ("v2.list-items", ["v2", "list", "items"]),
        ("搜索file", ["搜索", "file"]),
    ],
)
def test_identifiers_are_cut_at_case_and_separators(name: str, expected: list[str]):
    assert parts(name) == expected


def test_a_camel_case_run_is_found_whole_and_in_parts():
    assert terms("GitHub") == ["github", "git", "hub"]
    assert terms("github") == ["github"]


def test_stop_words_count_only_where_asked_for():
    assert terms("who is on the list") == ["list"]
    assert terms("who_am_i", stop_words=True) == ["who", "am", "i"]


def test_neighbouring_pieces_are_also_one_word():
    assert compounds("air_qualityIndex") == ("airquality", "qualityindex", "airqualityindex")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("天气预报", ["天气", "气预", "预报"]),
        ("雨", ["雨"]),
        ("東京のweather", ["東京", "京の", "weather"]),
        ("날씨 검색", ["날씨", "검색"]),
        ("ｆｕｌｌ　ｗｉｄｔｈ", ["full", "width"]),
        ("Réunion à Zürich", ["reunion", "zurich"]),
        ("поиск файлов", ["поиск", "фаило"]),
        ("ค้นหา", ["ค้", "้น", "นห", "หา"]),
        ("मौसम की जानकारी", ["मौसम", "की", "जानका"]),
    ],
)
def test_text_of_any_script_has_terms(text: str, expected: list[str]):
    assert terms(text) == expected


@given(st.text())
@settings(max_examples=100)
def test_any_text_has_terms_without_spaces_or_upper_case(text: str):
    found = terms(text, stop_words=True)
    assert [t for t in found if t != t.lower() or any(c.isspace() for c in t)] == []


def test_a_run_too_long_for_a_word_is_none():
    assert terms("x" * 1_000_000) == []


@pytest.mark.parametrize(
    "slip", ["calender", "calandar", "calndar", "callendar", "claendar", "calendra", "xcalendar"]
)
def test_a_word_is_found_from_one_slip_away(slip: str):
    assert Spelling(["calendar", "calories", "colander"]).near(slip) == ["calendar"]


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ("mail", "mail", True),
        ("mail", "main", True),
        ("mail", "mial", True),
        ("mail", "mails", True),
        ("mail", "ail", True),
        ("mail", "lima", False),
        ("mail", "mile", False),
        ("mail", "maximal", False),
        ("", "a", True),
        ("ab", "ba", True),
        ("abc", "cba", False),
    ],
)
def test_one_slip_is_a_letter_more_less_other_or_two_swapped(one: str, other: str, expected: bool):
    assert is_one_slip(one, other) is expected
    assert is_one_slip(other, one) is expected
