"""A broken conversation becomes a legal one, and nothing else about it changes."""

import pytest
from conversations import (
    assistant,
    call,
    conversation,
    conversations,
    image,
    png,
    result,
    text,
    user,
)
from hypothesis import given
from hypothesis import strategies as st
from timing import seconds

from mcp_context_server.core.messages import Message
from mcp_context_server.core.rules import ModelTraits, Originals, Repair, repair, validate

STRICT = ModelTraits(requires_alternation=True, supports_prefill=False, supports_system_role=False)


def faults(messages, **options):
    return validate([message.wire() for message in messages], **options)


def without_ids(messages):
    return [(message.role, message.blocks) for message in messages]


SEARCH_HIT = {"type": "search_result", "title": "t", "source": "s", "content": []}
GARBAGE = [
    {},
    {"type": None},
    {"type": "text"},
    {"type": "text", "text": ""},
    {"type": "text", "text": " \n"},
    {"type": "tool_use", "name": "x", "input": {}},
    {"type": "tool_use", "id": "bad id!", "name": "a.b", "input": "{}"},
    {"type": "tool_use", "id": "srvtoolu_9", "name": "web_search", "input": None},
    {"type": "tool_result", "tool_use_id": 5},
    {"type": "tool_result", "tool_use_id": "gone", "content": ["x", {}, {"type": "text"}]},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_gone", "content": []},
    {"type": "server_tool_use", "id": "srvtoolu_8", "name": "web_search", "input": {}},
    {"type": "mcp_tool_use"},
    {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
    {
        "type": "thinking",
        "thinking": "hm",
        "cache_control": {"type": "ephemeral"},
        "signature": "c",
    },
    {"type": "thinking", "thinking": None},
    {"type": "redacted_thinking"},
    {"type": "hologram", "payload": 1},
    {"type": "tool_result", "tool_use_id": "c1", "content": {"x": 1}},
    {"type": "tool_use", "id": "m", "name": "click", "input": {}, "toolset_name": "browser"},
    {"type": "tool_result", "tool_use_id": "m", "content": [image(), {"type": "document"}]},
    {
        "type": "tool_use",
        "id": "p",
        "name": "q",
        "input": {},
        "caller": {"type": "code_execution_1"},
    },
    {"type": "tool_result", "tool_use_id": "p", "content": [image()], "pinned": True},
    {
        "type": "tool_result",
        "tool_use_id": "c1",
        "content": [SEARCH_HIT, {"type": "text", "text": "x"}],
    },
    {"type": "text", "text": "x", "citations": [{}], "cache_control": {"type": "ephemeral"}},
    {"type": "text", "text": "x", "cache_control": {"type": "ephemeral", "ttl": "1h"}},
    {"type": "text", "text": " ", "cache_control": {"type": "ephemeral", "scope": "all"}},
    {"type": "compaction", "content": "so far", "signature": "c2ln"},
    {"type": "compaction", "content": ""},
    {"type": "image"},
    {"type": "image", "source": {"type": "base64", "media_type": "image/jpeg", "data": png(9, 9)}},
    {
        "type": "image",
        "source": {"type": "base64", "media_type": "image/png", "data": png(9001, 9)},
    },
    image(2500, 30),
    {"type": "document", "source": {"type": "text", "data": "x"}, "citations": {"enabled": True}},
    {"type": "document", "source": {"type": "text", "data": "x"}},
    {"type": "tool_reference", "tool_name": "gone"},
    {
        "type": "tool_search_tool_result",
        "tool_use_id": "srvtoolu_8",
        "content": {
            "tool_references": [{"tool_name": "gone"}, {"tool_name": "Read"}, {"tool_name": "lost"}]
        },
    },
    {"type": "tool_addition", "tool": {"type": "tool_reference", "name": "gone"}},
    {"type": "fallback", "to": {}},
]


def _content(view, at, to, b, odd):
    view[at] = view[at].model_copy(update={"content": ["", " ", ()][odd % 3]})


def _without_block(view, at, to, b, odd):
    view[at] = view[at].with_blocks(view[at].blocks[:b] + view[at].blocks[b + 1 :])


def _block_to(view, at, to, b, odd):
    view[to] = view[to].with_blocks([*view[to].blocks, *view[at].blocks[b : b + 1]])


def _backwards(view, at, to, b, odd):
    view[at] = view[at].with_blocks(reversed(view[at].blocks))


def _role(view, at, to, b, odd):
    view[at] = view[at].model_copy(update={"role": ["user", "assistant", "system"][odd % 3]})


def _chunk(view, at, to, b, odd):
    for number in (at, to):
        view[number] = view[number].model_copy(update={"api_message_id": f"r{odd % 2}"})


def _garbage(view, at, to, b, odd):
    blocks = view[at].blocks
    view[at] = view[at].with_blocks([*blocks[:b], GARBAGE[odd % len(GARBAGE)], *blocks[b:]])


def _swap(view, at, to, b, odd):
    view[at], view[to] = view[to], view[at]


MANGLINGS = [
    lambda view, at, to, b, odd: view.pop(at),
    lambda view, at, to, b, odd: view.insert(to, view[at]),
    _swap,
    _content,
    _without_block,
    _block_to,
    _backwards,
    _role,
    _chunk,
    _garbage,
]


@st.composite
def mangled(draw):
    """Legal conversations with messages and blocks dropped, repeated, moved, blanked, retyped."""
    view = list(draw(conversations))
    for mangle in draw(st.lists(st.sampled_from(MANGLINGS), max_size=6)):
        if view:
            places = st.integers(0, len(view) - 1)
            mangle(
                view, draw(places), draw(places), draw(st.integers(0, 3)), draw(st.integers(0, 999))
            )
    return tuple(view)


TINY = ModelTraits(
    many_images=1,
    max_media=2,
    max_breakpoints=2,
    binds_thinking=True,
    supports_tool_reference=False,
)
SENT = {"tools": [{"name": "Read", "input_schema": {"type": "object"}}], "max_tokens": 9}
UNTHINKING = {**SENT, "thinking": {"type": "disabled"}}

terms = st.fixed_dictionaries(
    {
        "open_tail": st.booleans(),
        "traits": st.sampled_from([ModelTraits(), STRICT, TINY]),
        "request": st.sampled_from([None, SENT, UNTHINKING]),
        "betas": st.sampled_from([None, ()]),
    }
)


def illegal(view, **options):
    return [f for f in faults(view, **options) if f.path != "container"]


@pytest.mark.requirement("VALID-1")
@given(mangled(), terms)
def test_whatever_was_broken_is_legal_after_repair(view, options):
    repaired, repairs = repair(view, **options)
    assert illegal(repaired, **options) == [] or repaired == ()
    assert bool(repairs) == (repaired is not view)
    assert repair(repaired, **options)[0] == repaired


ODD = [
    None,
    5,
    float("nan"),
    "",
    " ",
    "x",
    "1h",
    [],
    [5],
    [{}],
    {},
    {"type": "text"},
    {"ttl": "1h"},
]
FIELDS = ["type", "id", "name", "input", "tool_use_id", "content", "text", "thinking", "signature",
          "source", "citations", "cache_control", "caller", "toolset_name", "tool"]  # fmt: skip


@given(mangled(), st.data())
def test_fields_of_the_wrong_type_are_legal_after_repair(view, data):
    view = list(view)
    for _ in range(3 if view else 0):
        at = data.draw(st.integers(0, len(view) - 1))
        field, odd = data.draw(st.sampled_from(FIELDS)), data.draw(st.sampled_from(ODD))
        view[at] = view[at].with_blocks({**block, field: odd} for block in view[at].blocks)
    messages = repair(view, traits=TINY, request=SENT)[0]
    assert illegal(messages, traits=TINY, request=SENT) == [] or messages == ()


@given(mangled(), conversations, st.booleans())
def test_thinking_that_was_altered_or_moved_is_legal_after_repair(view, other, binds):
    whole = repair(view)[0]
    options = {
        "originals": Originals.of([message.wire() for message in whole]),
        "traits": ModelTraits(binds_thinking=binds),
    }
    assert repair(whole, **options) == (whole, ())
    shuffled = (*whole[1:], *other, *whole[:2])
    assert faults(repair(shuffled, **options)[0], **options) == ()


@given(conversations, st.booleans())
def test_a_legal_conversation_comes_back_as_the_same_object(view, open_tail):
    repaired, repairs = repair(view, open_tail=open_tail)
    assert repaired is view
    assert repairs == ()


def repaired(view, **options):
    return [(message.role, list(message.blocks)) for message in repair(view, **options)[0]]


def test_an_orphan_result_goes_and_the_text_beside_it_stays():
    view = (user(result("gone"), text("also do Y"), id="m0"),)
    assert repair(view) == (
        (user(text("also do Y"), id="m0"),),
        (Repair("R4", "messages.0.content.0", "Removed a result of 'gone', asked nowhere."),),
    )


def test_a_call_without_result_is_answered_with_an_error():
    view = conversation("u:go", "o:", "u:well?")
    assert repaired(view)[2] == (
        "user",
        [
            {
                "type": "tool_result",
                "tool_use_id": "c1",
                "content": "[result removed]",
                "is_error": True,
            },
            text("well?"),
        ],
    )


def test_an_answer_that_no_message_has_room_for_gets_its_own():
    view = (user("go", id="m0"), assistant(call("a"), id="m1"))
    messages, _ = repair(view)
    assert [message.id for message in messages] == ["m0", "m1", "m1:after"]
    assert messages[:2] == view


def test_an_open_call_at_the_end_of_a_stored_conversation_stays_open():
    view = conversation("u:go", "t:10", "o:")
    assert repair(view, open_tail=True)[0] is view


def test_results_over_several_messages_come_together_and_leave_what_was_said_between():
    view = (
        user("go", id="m0"),
        assistant(call("a"), call("b"), call("c"), id="m1"),
        user(result("a"), id="m2"),
        user(text("hurry"), result("c"), id="m3"),
        user(result("b"), id="m4"),
    )
    messages, repairs = repair(view)
    assert [(m.id, list(m.blocks)) for m in messages[2:]] == [
        ("m2", [result("a"), result("b"), result("c")]),
        ("m3", [text("hurry")]),
    ]
    assert messages[2].merged_ids == ("m4",)
    assert [repair.path for repair in repairs] == ["messages.4.content.0", "messages.3.content.1"]


def test_a_result_that_stands_too_early_or_too_late_is_moved_under_its_own_id():
    early = (user("go", id="m0"), user(result("a"), id="m1"), assistant(call("a"), id="m2"))
    late = (early[0], early[2], assistant(text("so"), id="m3", api_message_id="x"), early[1])
    assert [message.id for message in repair(early)[0]] == ["m0", "m2", "m1"]
    assert [message.id for message in repair(late)[0]] == ["m0", "m2", "m1", "m3"]


def test_text_before_a_result_goes_behind_it():
    view = (user("go"), assistant(call("a")), user(text("here"), result("a")))
    assert repaired(view)[2] == ("user", [result("a"), text("here")])


def test_a_second_result_goes():
    view = (user("go"), assistant(call("a")), user(result("a", "1"), result("a", "2")))
    assert repaired(view)[2] == ("user", [result("a", "1")])


def test_a_call_id_used_again_is_renamed_with_its_result():
    view = (*conversation("u:go", "t:9"), *conversation("u:more", "t:9")[1:], user(result("c1")))
    view = (*view[:3], assistant(call("c1")), user(result("c1", "second")))
    assert repaired(view)[3:] == [
        ("assistant", [call("c1_2")]),
        ("user", [result("c1_2", "second")]),
    ]


def test_a_call_made_twice_in_a_response_is_made_once():
    view = (user("go"), assistant(call("a")), assistant(call("a")), user(result("a")))
    assert repaired(view)[1:] == [("assistant", [call("a")]), ("user", [result("a")])]


def test_calls_and_results_without_ids_are_paired_in_their_order():
    def bare(block):
        return {name: value for name, value in block.items() if name not in ("id", "tool_use_id")}

    view = (
        user("go"),
        assistant(bare(call("")), bare(call(""))),
        user(bare(result("", "1")), bare(result("", "2")), bare(result("", "3"))),
    )
    assert repaired(view)[1:] == [
        ("assistant", [call("call"), call("call_2")]),
        ("user", [result("call", "1"), result("call_2", "2"), text("3")]),
    ]


def test_parallel_calls_that_share_one_id_keep_their_results_in_order():
    view = (user("go"), assistant(call("x"), call("x")), user(result("x", "1"), result("x", "2")))
    assert repaired(view)[1:] == [
        ("assistant", [call("x"), call("x_2")]),
        ("user", [result("x", "1"), result("x_2", "2")]),
    ]


def test_names_that_the_api_refuses_are_renamed_alike():
    view = (
        user("go"),
        assistant(call("a", "fs.read"), call("b", "fs_read"), call("c", "fs.read")),
        user(result("a"), result("b"), result("c")),
    )
    blocks = repaired(view)[1][1]
    assert [block["name"] for block in blocks] == ["fs_read_2", "fs_read", "fs_read_2"]


def test_an_input_that_is_no_object_is_wrapped():
    view = (user("go"), assistant({**call("a"), "input": "ls"}), user(result("a")))
    assert repaired(view)[1] == ("assistant", [{**call("a"), "input": {"value": "ls"}}])


def test_a_server_side_call_taken_for_a_client_one_is_told_apart():
    found = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": []}
    alone = (user("go"), assistant(call("srvtoolu_1", "web_search"), found, text("x")))
    answered = (user("go"), assistant(call("srvtoolu_1", "web_search")), user(result("srvtoolu_1")))
    assert repaired(alone)[1][1][0]["type"] == "server_tool_use"
    assert repaired(answered)[1:] == [
        ("assistant", [call("1", "web_search")]),
        ("user", [result("1")]),
    ]


def test_half_of_a_server_side_pair_goes():
    search, found, said = conversation("s:")[0].blocks
    for half in (search, found):
        view = (user("go"), assistant(half, said), user("more"))
        assert repaired(view)[1] == ("assistant", [said])


def test_empty_text_goes_and_a_message_is_never_left_empty():
    view = (user(text(""), text("go")), assistant(text(" ")), user(""), assistant(text("x")))
    placeholder = [text("[no content]")]
    assert repaired(view) == [
        ("user", [text("go")]),
        ("assistant", placeholder),
        ("user", placeholder),
        ("assistant", [text("x")]),
    ]


def test_thinking_that_nothing_follows_goes():
    thought = conversation("k:9")[0].blocks[0]
    view = (user("go"), assistant(thought, text("x"), thought), user("on"))
    assert repaired(view)[1] == ("assistant", [thought, text("x")])


def test_a_conversation_never_begins_with_a_reply():
    view = (assistant("hi", id="m7"), user("go", id="m8"))
    messages, _ = repair(view)
    assert messages == (user(text("[earlier messages removed]"), id="m7:before"), *view)


def chunk(*blocks, id, **more):
    return assistant(*blocks, id=id, api_message_id="msg_1", **more)


def test_chunks_of_one_response_come_together_when_results_stand_between_them():
    thought = conversation("k:9")[0].blocks[0]
    view = (
        user("go", id="m0"),
        chunk(thought, id="m1"),
        chunk(text("both"), id="m2"),
        chunk(call("a"), id="m3", usage={"output_tokens": 1}),
        user(result("a"), id="m4"),
        chunk(call("b"), id="m5", usage={"output_tokens": 70}, timestamp="2026-01-01T00:00:09Z"),
        user(result("b"), id="m6"),
        assistant("done", id="m7"),
    )
    messages, _ = repair(view)
    assert [(m.id, list(m.blocks)) for m in messages] == [
        ("m0", [text("go")]),
        ("m1", [thought, text("both"), call("a"), call("b")]),
        ("m4", [result("a"), result("b")]),
        ("m7", [text("done")]),
    ]
    assert messages[1].merged_ids == ("m2", "m3", "m5")
    assert messages[1].usage == {"output_tokens": 70}
    assert messages[1].timestamp == "2026-01-01T00:00:09Z"
    assert messages[2].merged_ids == ("m6",)


def test_chunks_that_are_legal_one_by_one_stay_apart():
    view = (
        user("go"),
        chunk(call("a"), id="m1"),
        user(result("a")),
        chunk(call("b"), id="m2"),
        user(result("b")),
    )
    assert repair(view)[0] is view


def test_a_system_message_moves_to_just_before_the_reply():
    rule = Message(role="system", content="be brief", id="s")
    between = (user("a"), assistant(call("c")), rule, user(result("c")), assistant("b"))
    first = (rule, user("a"))
    assert [message.role for message in repair(between)[0]] == [
        "user",
        "assistant",
        "user",
        "system",
        "assistant",
    ]
    assert repair(first)[0] == (first[1], rule)


def test_a_system_message_is_the_users_where_the_model_takes_none():
    view = (user("a"), Message(role="system", content="be brief", clear_at="never"))
    messages, _ = repair(view, traits=ModelTraits(supports_system_role=False))
    assert messages[1].wire() == {"role": "user", "content": "be brief"}


def test_messages_of_one_role_are_joined_where_the_backend_does_not():
    view = (user("a", id="m0"), user("b", id="m1"), assistant("c"))
    messages, _ = repair(view, traits=ModelTraits(requires_alternation=True))
    assert (messages[0].id, messages[0].merged_ids) == ("m0", ("m1",))
    assert list(messages[0].blocks) == [text("a"), text("b")]


def test_a_last_reply_is_made_one_that_the_model_takes():
    view = (user("a"), assistant("b \n"))
    assert repaired(view)[1:] == [("assistant", [text("b")])]
    assert repaired(view, traits=ModelTraits(supports_prefill=False))[1:] == [
        ("assistant", [text("b \n")]),
        ("user", [text("Continue.")]),
    ]


@given(conversations, st.data())
def test_what_nothing_is_wrong_with_stays_the_same_object(view, data):
    """Dropping any one message must not touch what is more than one message away."""
    at = data.draw(st.integers(0, len(view) - 1))
    broken = (*view[:at], *view[at + 1 :])
    kept = {id(message) for message in repair(broken)[0]}
    near = range(at - 1, at + 1)
    assert all(id(m) in kept for n, m in enumerate(broken) if n not in near)


@pytest.mark.timing
def test_repairing_takes_time_in_proportion_to_length():
    short, long = (conversation("u:go", *["o:", "u:x"] * turns) for turns in (100, 1_000))
    assert seconds(lambda: repair(long)) < 40 * seconds(lambda: repair(short))


def only_block(block, **options):
    """What becomes of a block in a prompt of its own."""
    (message,) = repair((user(text("see"), block),), **options)[0]
    return message.blocks[1]


def test_media_that_the_api_refuses_are_replaced_by_markers_of_their_size():
    assert only_block(image(9000, 10)) == text("[image of 9000x10 pixels removed]")
    few = ModelTraits(max_media=1)
    view = (user(image(8, 8)), assistant("ok"), user(image(9, 9)))
    assert repaired(view, traits=few) == [
        ("user", [text("[image of 8x8 pixels removed]")]),
        ("assistant", [text("ok")]),
        ("user", [image(9, 9)]),
    ]


def test_an_image_gets_the_media_type_that_its_bytes_have():
    wrong = image(9, 9)
    wrong = {**wrong, "source": {**wrong["source"], "media_type": "image/jpeg"}}
    assert only_block(wrong) == image(9, 9)


def test_the_latest_cache_marks_are_kept_and_none_lasts_longer_after_a_short_one():
    def marked(word, **more):
        return {**text(word), "cache_control": {"type": "ephemeral", **more}}

    view = (user(*(marked(word) for word in "abc"), marked("d", ttl="1h"), marked("e")),)
    assert repaired(view)[0][1] == [
        text("a"),
        marked("b"),
        marked("c"),
        marked("d"),
        marked("e"),
    ]


def test_references_to_tools_that_are_not_defined_become_text():
    gone = {"type": "tool_reference", "tool_name": "Bash"}
    view = (user("go"), assistant(call("a")), user(result("a", [gone])))
    request = {"tools": [{"name": "Read", "input_schema": {"type": "object"}}]}
    assert repaired(view, request=request)[2] == (
        "user",
        [result("a", [text("[tool 'Bash' is not available]")])],
    )
    assert repair(view)[0] is view


def test_results_of_toolset_members_name_their_toolset():
    view = (user("go"), assistant({**call("a"), "toolset_name": "browser"}), user(result("a")))
    assert repaired(view)[2] == ("user", [result("a", toolset_name="browser")])


def test_fields_of_ours_are_taken_from_blocks_and_unknown_ones_left():
    view = (user({**text("x"), "is_meta": True, "shine": 1}),)
    assert repaired(view) == [("user", [{**text("x"), "shine": 1}])]


def test_a_result_that_is_neither_text_nor_blocks_becomes_text():
    view = (user("go"), assistant(call("a")), user(result("a", {"n": [1]})))
    assert repaired(view)[2] == ("user", [result("a", '{"n": [1]}')])


def thinking(signature):
    return {"type": "thinking", "thinking": "", "signature": signature}


def test_bound_thinking_goes_from_where_the_conversation_was_changed():
    view = (
        user("go"),
        assistant(thinking("a"), text("x"), call("c")),
        user("no result"),
        assistant(thinking("b"), text("y")),
    )
    bound = repaired(view, traits=ModelTraits(binds_thinking=True))
    assert [block for _, blocks in bound for block in blocks if block["type"] == "thinking"] == []
    free = repaired(view)
    assert free[1][1][0] == thinking("a")
    assert free[3][1][0] == thinking("b")


def test_bound_thinking_stays_where_chunks_are_joined_as_they_were_sent():
    view = (
        user("go"),
        chunk(thinking("a"), id="m1"),
        chunk(call("c"), id="m2"),
        user(result("c")),
        assistant(thinking("b"), text("y")),
    )
    bound = repaired(view, traits=ModelTraits(binds_thinking=True))
    assert [blocks[0] for role, blocks in bound if role == "assistant"] == [
        thinking("a"),
        thinking("b"),
    ]


def test_altered_thinking_goes_with_all_that_follows_it():
    whole = (user("go"), assistant(thinking("a"), text("x")), user("on"))
    originals = Originals.of([message.wire() for message in whole])
    altered = (whole[0], assistant({**thinking("a"), "thinking": "hm"}, text("x")), whole[2])
    assert repaired(altered, originals=originals)[1] == ("assistant", [text("x")])


def test_a_compaction_block_that_can_not_be_sent_becomes_text():
    compacted = {"type": "compaction", "content": "so far", "signature": "c2ln"}
    view = (user("go"), assistant(compacted), user("on"))
    assert repaired(view)[1] == ("assistant", [text("so far")])
    assert repair(view[1:])[0] == view[1:]


def test_results_in_a_message_of_search_results_are_all_text():
    hit = {"type": "search_result", "title": "T", "source": "S", "content": [text("found")]}
    view = (user("go"), assistant(call("a")), user(result("a", [hit, text("more")])))
    assert repaired(view)[2] == ("user", [result("a", [text("T\nS\nfound"), text("more")])])
