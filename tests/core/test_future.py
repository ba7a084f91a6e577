"""Future-reference recall: what a shortened context still holds of what was needed next."""

from conversations import assistant, call, result, user

from mcp_context_server.core.summary.future import (
    FUTURE_PASSAGES,
    STRETCH_CHARS,
    Passage,
    lost,
    names,
    passages,
    recall,
    references,
)


def own(text: str) -> Passage:
    return Passage(is_assistant=True, is_result=False, text=text)


def shown(text: str) -> Passage:
    return Passage(is_assistant=False, is_result=True, text=text)


def test_names_are_paths_with_their_last_part_and_words_no_sentence_has():
    text = "see src/tide_table.py, runNow and v2beta, not plain words or 123456"
    assert names(text) == {"src/tide_table.py", "tide_table.py", "runNow", "v2beta"}


def test_the_names_of_a_text_are_the_same_however_long_it_is():
    text = "see src/tide_table.py, runNow and v2beta in harbour_list.py; "
    assert names(text * (3 * STRETCH_CHARS // len(text))) == names(text)


def test_what_is_used_next_and_known_from_before_only_is_a_reference():
    before = [shown("alpha_one beta_two gamma_three")]
    after = [own("alpha_one delta_four"), shown("beta_two"), own("beta_two gamma_three alpha_one")]
    assert references(before, after) == ("alpha_one", "gamma_three")


def test_only_the_next_passages_of_the_assistant_count():
    after = [*(own("nothing here") for _ in range(FUTURE_PASSAGES)), own("alpha_one")]
    assert references([shown("alpha_one")], after) == ()


def test_recall_is_the_share_that_was_kept():
    needed = ("alpha_one", "beta_two", "gamma_three", "delta_four")
    assert lost("alpha_one and delta_four", needed) == ("beta_two", "gamma_three")
    assert recall("alpha_one and delta_four", needed) == 0.5


def test_texts_calls_and_results_are_passages_in_order():
    messages = (
        user("look"),
        assistant({"type": "text", "text": "I look"}, call("c1", "Read", file_path="/a.py")),
        user(result("c1", "found it")),
    )
    assert list(passages(messages)) == [
        Passage(False, False, "look"),
        own("I look"),
        own('Read {"file_path": "/a.py"}'),
        shown("found it"),
    ]
