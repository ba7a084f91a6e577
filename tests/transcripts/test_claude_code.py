import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transcripts.claude import (
    PROMPT,
    answer,
    attachment,
    boundary,
    call,
    lines,
    record,
    reply,
    summary,
    user,
)
from transcripts.reading import events_of, ids, now, of_kind

from mcp_context_server.core.markers import CLEARED
from mcp_context_server.core.messages import Message
from mcp_context_server.transcripts.base import (
    Appended,
    Cleared,
    Compacted,
    Described,
    Reported,
    Retracted,
    Rewound,
    Unreadable,
)
from mcp_context_server.transcripts.timeline import timeline

REMINDED = "<system-reminder>\n{}\n</system-reminder>"


def test_a_prompt_and_a_reply_become_messages_with_what_the_host_told():
    told = events_of(lines(user("u1", None, "hi"), reply("a1", "u1", "yo", stop="end_turn")))
    at = "2026-01-02T03:04:05.000Z"
    model = "claude-opus-4-6"
    usage = PROMPT | {"output_tokens": 3}
    said = ({"type": "text", "text": "yo"},)
    assert told == [
        Described(session_id=told[0].session_id, cwd="/proj/app"),
        Appended(Message(id="u1", role="user", content="hi", timestamp=at)),
        Described(model=model),
        Appended(
            Message(
                id="a1",
                role="assistant",
                content=said,
                timestamp=at,
                api_message_id="msg_a1",
                model=model,
            )
        ),
        Reported("a1", usage, "msg_a1", model, output_is_final=True, timestamp=at),
    ]


def test_chunks_of_one_response_with_results_between_them_are_reported_once():
    told = events_of(
        lines(
            user("u1", None, "go"),
            reply("a1", "u1", call("c1"), of="m"),
            answer("r1", "a1", "c1"),
            reply("a2", "a1", call("c2"), of="m"),
            answer("r2", "a2", "c2"),
        )
    )
    assert ids(told) == ["u1", "a1", "r1", "a2", "r2"]
    assert [(r.message_id, r.output_is_final) for r in of_kind(told, Reported)] == [("a1", False)]
    assert of_kind(told, Rewound) == []


def test_a_placeholder_output_is_reported_again_once_it_is_final():
    final = PROMPT | {"output_tokens": 250}
    told = events_of(
        lines(
            user("u1", None, "go"),
            reply("a1", "u1", "thinking", of="m"),
            reply("a2", "a1", "done", of="m", usage=final, stop="end_turn"),
            reply("a3", "a2", "late chunk", of="m"),
        )
    )
    assert [
        (r.message_id, r.usage["output_tokens"], r.output_is_final) for r in of_kind(told, Reported)
    ] == [
        ("a1", 3, False),
        ("a1", 250, True),
    ]
    assert timeline(told).last_usage.index == 1


@pytest.mark.parametrize(
    ("stop", "unmeasured"), [(None, ["a1", "r1", "a2", "u2"]), ("end_turn", ["r1", "u2"])]
)
def test_a_final_report_covers_its_response_and_not_the_results_between_its_chunks(
    stop, unmeasured
):
    told = events_of(
        lines(
            user("u1", None, "go"),
            reply("a1", "u1", call("c1"), of="m"),
            answer("r1", "a1", "c1"),
            reply("a2", "a1", "done", of="m", stop=stop),
            user("u2", "a2", "thanks"),
        )
    )
    assert [message.id for message in timeline(told).unmeasured] == unmeasured


def test_usage_is_passed_on_raw_with_its_iterations():
    usage = PROMPT | {"output_tokens": 9, "iterations": [{"type": "message", "input_tokens": 7}]}
    told = events_of(lines(reply("a1", None, "x", usage=usage, stop="end_turn")))
    assert of_kind(told, Reported)[0].usage == usage


def test_what_the_host_made_up_is_no_usage_and_error_text_is_no_message():
    told = events_of(
        lines(
            user("u1", None, "go"),
            reply("e1", "u1", "API Error: overloaded", model="<synthetic>", isApiErrorMessage=True),
            reply("s1", "e1", "No response requested.", model="<synthetic>"),
            reply("z1", "s1", "zero", usage={"input_tokens": 0, "output_tokens": 0}),
        )
    )
    assert ids(told) == ["u1", "s1", "z1"]
    assert of_kind(told, Reported) == []


def test_side_conversations_are_left_out_of_the_session_and_are_all_of_an_agent_file():
    side = {"isSidechain": True, "agentId": "a7"}
    data = lines(user("u1", None, "hi"), user("s1", None, "search", **side))
    assert ids(events_of(data)) == ["u1"]
    assert ids(events_of(data, name="agent-a7.jsonl")) == ["u1", "s1"]


def test_bookkeeping_is_no_message_but_links_what_stands_around_it():
    told = events_of(
        lines(
            {"type": "queue-operation", "operation": "enqueue", "content": "typed ahead"},
            {"type": "summary", "summary": "Title", "leafUuid": "elsewhere"},
            {"type": "file-history-snapshot", "messageId": "u1", "snapshot": {}},
            {"type": "never-seen-before", "uuid": "n1"},
            user("u1", None, "hi"),
            record("progress", "p1", "u1", data={"type": "agent_progress", "message": {}}),
            record("system", "y1", "p1", subtype="turn_duration", durationMs=5),
            reply("a1", "y1", "yo"),
            user("v1", "a1", "only for the eye", isVisibleInTranscriptOnly=True),
            user("u2", "v1", "again"),
        )
    )
    assert now(told) == ["u1", "a1", "u2"]
    assert of_kind(told, Rewound) == []


def test_a_result_is_what_the_model_saw_not_what_the_screen_showed():
    preview = "<persisted-output>\nsaved to /x.txt\nfirst lines\n</persisted-output>"
    told = events_of(lines(reply("a1", None, call("c1")), answer("r1", "a1", "c1", preview)))
    assert of_kind(told, Appended)[1].message.content == (
        {"type": "tool_result", "tool_use_id": "c1", "content": preview},
    )


@pytest.mark.parametrize(
    ("attached", "text"),
    [
        ({"type": "hook_additional_context", "content": ["one", "two"]}, "one\ntwo"),
        ({"type": "skill_listing", "content": "- pdf: reads", "names": ["pdf"]}, "- pdf: reads"),
        ({"type": "agent_listing_delta", "addedLines": ["- a", "- b"]}, "- a\n- b"),
        (
            {"type": "nested_memory", "path": "/C.md", "content": {"content": "rules"}},
            "/C.md\nrules",
        ),
        ({"type": "edited_text_file", "filename": "a.py", "snippet": "1 x"}, "a.py\n1 x"),
        ({"type": "task_reminder", "content": [{"id": "1"}]}, '{"id": "1"}'),
        ({"type": "invoked_skills", "skills": [{"content": "S1"}, {"content": "S2"}]}, "S1\n\nS2"),
        ({"type": "hook_blocking_error", "blockingError": {"blockingError": "no"}}, "no"),
        ({"type": "total_tokens_reminder", "text": "5 left"}, "5 left"),
        ({"type": "compact_file_reference", "filename": "/a.py"}, "/a.py"),
        ({"type": "hook_success", "hookEvent": "SessionStart", "content": "hello"}, "hello"),
        (
            {
                "type": "file",
                "filename": "a.py",
                "content": {"type": "text", "file": {"content": "x = 1"}},
            },
            "a.py\nx = 1",
        ),
        ({"type": "of_tomorrow", "text": "news"}, "news"),
    ],
)
def test_an_attachment_is_a_reminder_from_the_host(attached, text):
    told = events_of(lines(record("attachment", "t1", None, attachment=attached)))
    (message,) = timeline(told).messages
    assert message.content == ({"type": "text", "text": REMINDED.format(text)},)
    assert message.is_meta


@pytest.mark.parametrize(
    "attached",
    [
        {"type": "hook_success", "hookEvent": "PostToolUse", "content": "ran"},
        {"type": "hook_success", "hookEvent": "SessionStart", "content": "", "stdout": "{}"},
        {"type": "hook_system_message", "content": "for the person"},
        {"type": "command_permissions", "allowedTools": []},
        {"type": "plan_mode", "planExists": False},
        {"type": ["malformed"]},
        {},
    ],
)
def test_an_attachment_that_the_model_does_not_get_is_no_message(attached):
    assert ids(events_of(lines(record("attachment", "t1", None, attachment=attached)))) == []


def test_a_prompt_typed_ahead_is_a_persons_and_keeps_its_pictures():
    blocks = [{"type": "text", "text": "look"}, {"type": "image", "source": {}}]
    told = events_of(
        lines(
            {"type": "queue-operation", "operation": "enqueue", "content": "look"},
            attachment("q1", None, "queued_command", prompt=blocks, commandMode="prompt"),
            attachment("q2", "q1", "queued_command", prompt="t", commandMode="task-notification"),
        )
    )
    assert [(m.content, m.is_meta) for m in timeline(told).messages] == [
        (tuple(blocks), False),
        (({"type": "text", "text": "t"},), True),
    ]


def test_a_picture_that_was_attached_is_an_image():
    file = {"base64": "AAAA", "type": "image/jpeg"}
    content = {"type": "image", "file": file}
    told = events_of(lines(attachment("f1", None, "file", filename="a.jpg", content=content)))
    source = {"type": "base64", "media_type": "image/jpeg", "data": "AAAA"}
    assert timeline(told).messages[0].content == ({"type": "image", "source": source},)


def test_after_a_compaction_the_conversation_is_the_summary_and_what_was_kept():
    kept = {"preservedMessages": {"anchorUuid": "s1", "uuids": ["a2", "u2"]}, "postTokens": 1300}
    told = events_of(
        lines(
            user("u1", None, "one"),
            reply("a1", "u1", "1", stop="end_turn"),
            user("u2", "a1", "two"),
            reply("a2", "u2", "2", stop="end_turn"),
            user("c1", "a2", "/compact"),
            boundary("b1", "a2", trigger="manual", **kept),
            summary("s1", "b1", "what happened"),
            user("u3", "s1", "three"),
        )
    )
    (compaction,) = of_kind(told, Compacted)
    assert [m.id for m in compaction.replacement] == ["s1"]
    assert compaction.replacement[0].is_meta
    assert (compaction.trigger, compaction.tokens_before, compaction.tokens_after) == (
        "manual",
        167000,
        1300,
    )
    assert now(told) == ["s1", "u2", "a2", "u3"]
    assert timeline(told).last_usage is None, "usage from before the boundary measures nothing now"


def test_kept_messages_may_be_named_by_first_and_last():
    segment = {"headUuid": "a1", "tailUuid": "a2", "anchorUuid": "s1"}
    told = events_of(
        lines(
            user("u1", None, "one"),
            reply("a1", "u1", "1"),
            user("u2", "a1", "two"),
            reply("a2", "u2", "2"),
            boundary("b1", "a2", preservedSegment=segment),
            summary("s1", "b1", "so far"),
        )
    )
    assert now(told) == ["s1", "a1", "u2", "a2"]


def test_a_boundary_without_a_summary_still_ends_what_came_before():
    told = events_of(
        lines(user("u1", None, "one"), boundary("b1", "u1"), reply("a1", "b1", "fresh"))
    )
    assert of_kind(told, Compacted)[0].replacement == ()
    assert now(told) == ["a1"]


def test_a_summary_without_a_boundary_is_a_compaction_of_unknown_size():
    told = events_of(lines(summary("s1", None, "from an earlier file"), reply("a1", "s1", "ok")))
    assert of_kind(told, Compacted)[0].tokens_before is None
    assert now(told) == ["s1", "a1"]


def test_cleared_results_are_told_and_shown_cleared():
    metadata = {
        "trigger": "auto",
        "preTokens": 50000,
        "tokensSaved": 26000,
        "compactedToolIds": ["c1"],
        "clearedAttachmentUUIDs": ["t1"],
    }
    told = events_of(
        lines(
            attachment("t1", None, "skill_listing", content="- long"),
            reply("a1", "t1", call("c1")),
            answer("r1", "a1", "c1", "long"),
            reply("a2", "r1", call("c2")),
            answer("r2", "a2", "c2", "kept"),
            record(
                "system",
                "m1",
                "r2",
                subtype="microcompact_boundary",
                microcompactMetadata=metadata,
            ),
        )
    )
    assert of_kind(told, Cleared) == [
        Cleared(("c1",), ("t1",), "auto", 50000, "2026-01-02T03:04:05.000Z")
    ]
    shown = timeline(told).messages
    assert [m.id for m in shown] == ["a1", "r1", "a2", "r2"]
    assert [m.blocks[0].get("content") for m in shown[1::2]] == [CLEARED, "kept"]


TALK = (
    user("u1", None, "one"),
    reply("a1", "u1", "1"),
    user("u2", "a1", "two"),
    reply("a2", "u2", "2"),
)


def test_a_prompt_typed_anew_leaves_the_old_one_and_what_followed():
    told = events_of(lines(*TALK, user("u3", "a1", "two, but better")))
    assert of_kind(told, Rewound) == [Rewound("a1")]
    assert now(told) == ["u1", "a1", "u3"]


def test_the_first_prompt_typed_anew_starts_from_nothing():
    told = events_of(lines(*TALK, user("u3", None, "start over")))
    assert of_kind(told, Rewound) == [Rewound(None)]
    assert now(told) == ["u3"]


def test_records_that_are_not_linked_at_all_are_simply_in_order():
    told = events_of(lines(user("u1", None, "one"), user("u2", None, "two"), user("u3", "?", "3")))
    assert now(told) == ["u1", "u2", "u3"]


def test_a_rewind_seen_only_in_the_hosts_own_pointer_counts():
    told = events_of(lines(*TALK, {"type": "last-prompt", "leafUuid": "a1"}))
    assert now(told) == ["u1", "a1"]


def test_going_on_from_a_branch_that_was_left_brings_it_back():
    told = events_of(
        lines(*TALK, user("u3", "a1", "other"), reply("a3", "u3", "3"), user("u4", "a2", "back"))
    )
    assert of_kind(told, Rewound) == [Rewound("a1"), Rewound("a1", ("u2", "a2"))]
    assert now(told) == ["u1", "a1", "u2", "a2", "u4"]


def test_a_rewind_to_before_a_compaction_undoes_it():
    told = events_of(
        lines(
            *TALK,
            boundary("b1", "a2"),
            summary("s1", "b1", "so far"),
            user("u3", "s1", "three"),
            user("u4", "a1", "two, but better"),
        )
    )
    assert now(told) == ["u1", "a1", "u4"]


def test_a_rewind_after_two_compactions_keeps_the_first_summary():
    told = events_of(
        lines(
            *TALK,
            boundary("b1", "a2"),
            summary("s1", "b1", "first"),
            user("u3", "s1", "three"),
            reply("a3", "u3", "3"),
            boundary("b2", "a3"),
            summary("s2", "b2", "second"),
            user("u4", "s2", "four"),
            {"type": "last-prompt", "leafUuid": "u3"},
        )
    )
    assert now(told) == ["s1", "u3"]


def test_results_of_parallel_calls_are_no_rewind_whatever_their_parents():
    told = events_of(
        lines(
            user("u1", None, "go"),
            reply("a1", "u1", call("c1"), of="m"),
            reply("a2", "a1", call("c2"), of="m"),
            answer("r2", "a2", "c2"),
            answer("r1", "a1", "c1"),
            reply("a3", "r2", "done"),
            user("u2", "a3", "thanks"),
        )
    )
    assert of_kind(told, Rewound) == []
    assert now(told) == ["u1", "a1", "a2", "r2", "r1", "a3", "u2"]


def test_withdrawn_messages_are_told_and_gone():
    told = events_of(
        lines(
            user("u1", None, "go"),
            reply("a1", "u1", "no"),
            record(
                "system",
                "f1",
                "a1",
                subtype="model_refusal_fallback",
                retractedMessageUuids=["a1", "unknown"],
            ),
            reply("a2", "u1", "yes"),
        )
    )
    assert of_kind(told, Retracted) == [Retracted(("a1",))]
    assert now(told) == ["u1", "a2"]


def test_a_record_told_twice_is_one_message():
    assert now(events_of(lines(*TALK, *TALK))) == ["u1", "a1", "u2", "a2"]


def test_records_whose_parents_go_round_in_a_circle_are_read():
    told = events_of(lines(user("u1", "u1", "mine"), user("u2", "u3", "a"), user("u3", "u2", "b")))
    assert now(told) == ["u1", "u2", "u3"]


def test_messages_without_an_id_of_their_own_get_one_each():
    bare = {"type": "user", "message": {"role": "user", "content": "hi"}}
    assert now(events_of(lines(bare, bare))) == ["record-1", "record-2"]


def test_local_commands_are_the_hosts_words():
    told = events_of(
        lines(record("system", "l1", None, subtype="local_command", content="<out>a</out>"))
    )
    assert [(m.content, m.is_meta) for m in timeline(told).messages] == [("<out>a</out>", True)]


@pytest.mark.parametrize(
    "broken",
    [
        {"message": "text"},
        {"message": {"content": 5}},
        {"message": {"content": [5, None, []]}},
        {"message": None},
        {"parentUuid": ["list"], "message": {"content": {}}},
    ],
)
@pytest.mark.parametrize("kind", ["user", "assistant"])
def test_records_of_the_wrong_shape_are_no_messages_and_no_error(kind, broken):
    assert ids(events_of(lines(record(kind, "x1", **broken)))) == []


def test_a_lone_surrogate_does_not_reach_the_text():
    told = events_of(
        b'{"type":"user","uuid":"u1","message":{"content":"a \\ud83d b \\ud83d\\ude00"}}\n'
    )
    assert timeline(told).messages[0].content == "a \ufffd b \U0001f600"


GLUED = b"".join(lines(user(id, "a1", "glued")).strip() for id in ("g1", "g2"))
LONG = b"\n".join(
    (
        lines(
            *TALK,
            attachment("t1", "a2", "queued_command", prompt="日本語 \ud83d typed ahead"),
            reply("a3", "t1", call("c1"), of="m"),
            answer("r1", "a3", "c1", "résultat"),
            reply("a4", "a3", "done", of="m", stop="end_turn"),
            boundary("b1", "a4"),
            summary("s1", "b1", "so far"),
            user("u4", "a1", "rewound"),
        ),
        GLUED,
        b"not json",
        b'\xff\xfe{"type":"assis',
    )
)


@pytest.mark.requirement("HOST-1")
@settings(max_examples=30)
@given(st.lists(st.integers(0, len(LONG)), max_size=300))
def test_bytes_cut_anywhere_give_the_same_events(cuts):
    assert events_of(LONG, cuts=cuts) == events_of(LONG)


def test_bytes_one_by_one_give_the_same_events():
    assert events_of(LONG, cuts=range(len(LONG))) == events_of(LONG)


def test_what_can_not_be_read_is_named_by_its_line():
    told = events_of(lines(*TALK) + b"not json\n" + lines(user("u5", "a2", "go on")))
    assert of_kind(told, Unreadable) == [Unreadable(5, "Expecting value: line 1 column 1 (char 0)")]
    assert now(told) == ["u1", "a1", "u2", "a2", "u5"]
