"""Edits of JSON text leave everything else as it was."""

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from mcp_context_server.hosts import jsonc

COMMENTED = """{
  // the editor's theme
  "theme": "dark", /* always */
  "servers": {
    "other": { "command": "x" }, // not ours
  },
}
"""

plain = st.none() | st.booleans() | st.integers() | st.text(max_size=8)
values = st.recursive(
    plain,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=12,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)
layouts = st.sampled_from([None, 2, 4, "\t"])


def test_a_value_joins_a_file_with_comments_and_trailing_commas():
    assert jsonc.put(COMMENTED, ("servers", "context"), {"command": "m"}) == (
        COMMENTED.replace(
            "// not ours\n",
            '// not ours\n    "context": {\n      "command": "m"\n    },\n',
        )
    )


def test_a_value_is_replaced_where_it_stands():
    text = jsonc.put(COMMENTED, ("theme",), "light")
    assert text == COMMENTED.replace('"dark"', '"light"')


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{"x":1}', '{"x":1,"a":{"b":1}}'),
        ('{"x": 1}', '{"x": 1, "a": {"b": 1}}'),
        ('{\r\n\t"x": 1\r\n}', '{\r\n\t"x": 1,\r\n\t"a": {\r\n\t\t"b": 1\r\n\t}\r\n}'),
        ('{ "x": 1 // one\n}', '{ "x": 1, "a": {"b": 1} // one\n}'),
        ('{"x": 1, // one\n}', '{"x": 1, "a": {"b": 1}, // one\n}'),
        ('{"x": 1, "a": {// c\n}}', '{"x": 1, "a": {"b": 1// c\n}}'),
        ("{ // empty\n}", '{ // empty\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "a": {}\n}', '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('\ufeff{"x": 1}', '\ufeff{"x": 1, "a": {"b": 1}}'),
        ('{"a": 0, "a": {"c": 2}}', '{"a": 0, "a": {"c": 2, "b": 1}}'),
    ],
)
def test_new_values_are_written_as_the_file_is(text, after):
    assert jsonc.put(text, ("a", "b"), 1) == after


@given(objects, values, layouts)
def test_what_was_put_is_there_and_taking_it_out_gives_the_text_back(held, value, indent):
    text = json.dumps(held, indent=indent)
    after = jsonc.put(text, ("new",), value)
    assert json.loads(after) == {**held, "new": value}
    assert jsonc.remove(after, ("new",)) == text


@given(objects, st.lists(values, max_size=3), values, layouts)
@example({}, [{"//": None}], 1, None)
def test_what_was_appended_is_the_last_and_can_be_taken_out(held, items, value, indent):
    text = json.dumps({**held, "list": items}, indent=indent)
    after = jsonc.append(text, ("list",), value)
    assert json.loads(after) == {**held, "list": [*items, value]}
    assert jsonc.remove(after, ("list", len(items))) == text


@given(objects, layouts)
def test_any_member_can_be_taken_out(held, indent):
    text = json.dumps(held, indent=indent)
    for key in held:
        rest = {k: v for k, v in held.items() if k != key}
        assert json.loads(jsonc.remove(text, (key,))) == rest


@pytest.mark.parametrize(
    ("text", "rest"),
    [
        ('{ "a": 1, // c\n  "x": 2 }', {"a": 1}),
        ('{\n  // c\n  "x": 1, "a": 1\n}', {"a": 1}),
        ('{"x": 1, /* c */ "a": 1}', {"a": 1}),
        ('{"a": 1, "x": [1, 2,], }', {"a": 1}),
        ('{"a": 1}', {"a": 1}),
    ],
)
def test_comments_never_swallow_what_stays(text, rest):
    assert jsonc.read(jsonc.remove(text, ("x",))) == rest


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "expected a value"),
        ('{"a": 1', "expected a comma"),
        ('{"a" 1}', "expected a colon"),
        ("{a: 1}", "double quotes"),
        ('{"a": "b}', "does not end"),
        ('{"a": 1} x', "more text"),
        ('{"a": tru}', "expected a value"),
        ("[" * 300, "too deeply"),
        ('{\n  "a": 1 "b": 2}', "line 2, column 10"),
    ],
)
def test_what_is_no_json_says_where(text, fault):
    with pytest.raises(ValueError, match=fault):
        jsonc.read(text)


@pytest.mark.parametrize("text", ['{"a": 1,}', "{} // c", '{/* c */"a": 1}'])
def test_a_host_that_reads_plain_json_gets_no_comments(text):
    assert jsonc.read(text) in ({}, {"a": 1})
    with pytest.raises(ValueError, match="line 1"):
        jsonc.read(text, comments=False)


def test_nothing_is_put_into_what_can_not_hold_it():
    with pytest.raises(ValueError, match="a is not an object"):
        jsonc.put('{"a": 1}', ("a", "b"), 1)
    with pytest.raises(ValueError, match="a is not a list"):
        jsonc.append('{"a": 1}', ("a",), 1)
