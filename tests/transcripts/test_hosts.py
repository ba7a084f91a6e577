"""What each format means, by its host."""

import json

import pytest
from transcripts.reading import events_of, now, of_kind
from transcripts.samples import (
    CLINE,
    CODEX,
    GEMINI,
    OPENCODE,
    OPENHANDS,
    PI,
    SAMPLES,
    SWE,
    TOKENS,
    URL,
    codex,
    hands,
    item,
    json_lines,
    opencode,
    spoken,
    token_count,
)

from mcp_context_server.transcripts.base import Cleared, Compacted, Described, Reported, Rewound
from mcp_context_server.transcripts.timeline import timeline


def told(format, *records):
    """Events of a format's records, of its one object, or of its sample."""
    if not records:
        name, data = SAMPLES[format]
        return events_of(data, format, name)
    whole = len(records) == 1 and not isinstance(records[0], tuple)
    data = json.dumps(records[0]).encode() if whole else json_lines(*records[0])
    return events_of(data, format)


def shape(events):
    """Role, response and content of each message of the conversation."""
    return [(m.role, m.content) for m in timeline(events).messages]


def text(value):
    return {"type": "text", "text": value}


def use(id, name, **arguments):
    return {"type": "tool_use", "id": id, "name": name, "input": arguments}


def result(id, content, **more):
    return {"type": "tool_result", "tool_use_id": id, "content": content, **more}


class TestCodex:
    def test_items_are_the_conversation_and_what_the_screen_shows_is_not(self):
        reasoning = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "AAAA"}
        assert shape(told("codex")) == [
            ("system", (text("<permissions instructions>"),)),
            ("user", (text("<environment_context>here</environment_context>"),)),
            ("user", (text("fix it"),)),
            ("assistant", (reasoning,)),
            ("assistant", (use("c1", "shell", command=["ls"]),)),
            ("assistant", (use("c2", "apply_patch", input="*** Begin"),)),
            ("user", (result("c1", "a.txt"),)),
            ("user", (result("c2", "ok"),)),
            ("assistant", (text("done"),)),
        ]

    def test_what_the_host_wrote_is_not_a_persons(self):
        assert [m.is_meta for m in timeline(told("codex")).messages[:3]] == [True, True, False]

    def test_usage_measures_the_response_before_its_outputs_and_repeats_do_not_count(self):
        reports = of_kind(told("codex"), Reported)
        assert [(r.message_id, r.api_message_id, r.usage["input_tokens"]) for r in reports] == [
            ("item-4", "response-1", 1000),
            ("item-9", "response-2", 1200),
        ]
        assert timeline(told("codex")).last_usage.index == 8

    def test_the_session_is_described(self):
        facts = timeline(told("codex")).facts
        assert facts == Described(
            session_id="th-1",
            cwd="/work",
            model="gpt-5.5",
            context_window=258400,
            system="be good",
        )

    def test_rounds_of_calls_without_usage_are_responses_of_their_own(self):
        events = told(
            "codex",
            (
                spoken("user", "go"),
                item("function_call", call_id="c1", name="ls", arguments="{}"),
                item("function_call_output", call_id="c1", output="x"),
                item("function_call", call_id="c2", name="ls", arguments="{}"),
                item("function_call_output", call_id="c2", output="y"),
                item("message", role="assistant", content="done"),
            ),
        )
        responses = [m.api_message_id for m in timeline(events).messages]
        assert responses == [None, "response-1", None, "response-2", None, "response-3"]

    def test_after_a_compaction_its_replacement_is_the_conversation(self):
        history = [
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "one"}]},
            {"type": "compaction", "encrypted_content": "AAAA"},
        ]
        events = told(
            "codex",
            (
                *CODEX,
                codex("compacted", message="", replacement_history=history),
                codex("event_msg", type="context_compacted"),
                token_count(0, 2220),
                spoken("user", "go on"),
            ),
        )
        (compaction,) = of_kind(events, Compacted)
        assert compaction.tokens_before == 1210
        assert shape(events) == [
            ("user", (text("one"),)),
            ("user", ({"type": "compaction", "encrypted_content": "AAAA"},)),
            ("user", (text("go on"),)),
        ]
        assert timeline(events).last_usage is None

    def test_a_compaction_with_no_more_than_a_text_is_that_text(self):
        events = told("codex", (spoken("user", "one"), codex("compacted", message="summary")))
        assert shape(events) == [("user", (text("summary"),))]

    def test_turns_that_were_rolled_back_are_gone(self):
        rolled_back = codex("event_msg", type="thread_rolled_back", num_turns=1)
        events = told("codex", (*CODEX, spoken("user", "wrong"), rolled_back, spoken("user", "x")))
        assert of_kind(events, Rewound) == [Rewound("item-9")]
        assert shape(events)[-2:] == [("assistant", (text("done"),)), ("user", (text("x"),))]

    def test_the_oldest_files_hold_bare_items(self):
        events = told(
            "codex",
            (
                {"id": "th-0", "timestamp": "2025-05-01T00:00:00Z", "instructions": "be good"},
                {"type": "message", "role": "user", "content": "hi"},
                {"record_type": "state"},
                {"type": "function_call", "call_id": "c", "name": "shell", "arguments": "{"},
                {"type": "function_call_output", "call_id": "c", "output": {"content": "x"}},
            ),
        )
        assert shape(events) == [
            ("user", (text("hi"),)),
            ("assistant", (use("c", "shell", _raw="{"),)),
            ("user", (result("c", "x"),)),
        ]

    @pytest.mark.parametrize(
        ("output", "block"),
        [
            ("x", result("c", "x")),
            ({"content": "x", "success": False}, result("c", "x", is_error=True)),
            ({"type": "input_text", "text": "x"}, result("c", "x")),
            (
                [{"type": "input_image", "image_url": URL}],
                result(
                    "c",
                    [
                        {
                            "type": "image",
                            "source": {
                                "type": "base64",
                                "media_type": "image/png",
                                "data": "AAAA",
                            },
                        }
                    ],
                ),
            ),
            (None, result("c", [])),
        ],
    )
    def test_an_output_may_be_written_in_several_ways(self, output, block):
        events = told("codex", (item("function_call_output", call_id="c", output=output),))
        assert shape(events) == [("user", (block,))]


class TestGemini:
    def test_calls_and_their_results_stand_in_one_record(self):
        assert shape(told("gemini")) == [
            ("user", (text("fix it"),)),
            ("assistant", (use("c1", "read_file", file_path="a"), use("c2", "replace"))),
            ("user", (result("c1", "text"), result("c2", "no match", is_error=True))),
            ("assistant", (text("done"),)),
        ]

    def test_tokens_are_reported_as_they_are(self):
        (report,) = of_kind(told("gemini"), Reported)
        assert report.usage == GEMINI["messages"][1]["tokens"]

    def test_lines_replace_messages_and_take_them_back(self):
        header, first, second, *_ = (
            {k: GEMINI[k] for k in ("sessionId", "projectHash")},
            *GEMINI["messages"],
        )
        lines = (
            header,
            first,
            second | {"content": "old", "toolCalls": []},
            second | {"content": "new", "toolCalls": []},
            {"$set": {"lastUpdated": "later"}},
            {"id": "m9", "type": "user", "content": "wrong"},
            {"$rewindTo": "m9"},
        )
        assert shape(told("gemini", lines)) == [
            ("user", (text("fix it"),)),
            ("assistant", (text("new"),)),
        ]


class TestOpenCode:
    def test_parts_are_blocks_and_results_follow(self):
        image = {
            "type": "image",
            "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"},
        }
        assert shape(told("opencode")) == [
            ("user", (text("fix it"), image)),
            (
                "assistant",
                (
                    {"type": "reasoning", "text": "hm"},
                    use("c1", "read", filePath="a"),
                    use("c2", "bash"),
                ),
            ),
            ("user", (result("c1", "text"), result("c2", "failed", is_error=True))),
            ("assistant", (text("done"),)),
        ]

    def test_a_step_reports_its_tokens_and_an_aborted_one_does_not(self):
        assert [r.usage for r in of_kind(told("opencode"), Reported)] == [TOKENS]

    def test_a_summary_compacts_and_its_own_usage_says_nothing(self):
        asked = opencode(
            "user", "m4", {"type": "compaction", "auto": True}, {"type": "text", "text": "?"}
        )
        summary = opencode(
            "assistant", "m5", {"type": "text", "text": "sum"}, summary=True, tokens=TOKENS
        )
        more = opencode("user", "m6", {"type": "text", "text": "go on"})
        events = told(
            "opencode", {**OPENCODE, "messages": [*OPENCODE["messages"], asked, summary, more]}
        )
        (compaction,) = of_kind(events, Compacted)
        assert (compaction.trigger, compaction.tokens_before) == ("auto", 965)
        assert now(events) == ["m4", "m5", "m6"]
        assert timeline(events).last_usage is None

    def test_pruned_results_are_cleared(self):
        export = json.loads(json.dumps(OPENCODE))
        export["messages"][1]["parts"][2]["state"]["time"] = {"compacted": 1767323049000}
        assert of_kind(told("opencode", export), Cleared) == [Cleared(("c1",))]

    def test_what_was_reverted_is_left_out(self):
        info = {**OPENCODE["info"], "revert": {"messageID": "m3"}}
        assert "m3" not in now(told("opencode", {**OPENCODE, "info": info}))

    def test_synthetic_text_is_the_hosts_and_ignored_text_is_nothing(self):
        parts = ({"type": "text", "text": "injected", "synthetic": True},)
        ignored = ({"type": "text", "text": "never", "ignored": True},)
        export = {
            **OPENCODE,
            "messages": [opencode("user", "m1", *parts), opencode("user", "m2", *ignored)],
        }
        assert [(m.id, m.is_meta) for m in timeline(told("opencode", export)).messages] == [
            ("m1", True)
        ]


class TestPi:
    def test_entries_are_messages(self):
        thought = {"type": "thinking", "thinking": "hm", "signature": "AAAA"}
        assert shape(told("pi")) == [
            ("user", "fix"),
            ("assistant", (thought, text("looking"), use("c1", "read", path="a"))),
            ("user", (result("c1", "text"),)),
        ]

    def test_the_session_is_described(self):
        facts = timeline(told("pi")).facts
        assert facts == Described(session_id="s-1", cwd="/work", model="gpt-5", system="be good")

    def test_a_compaction_keeps_what_it_says(self):
        compaction = {
            "type": "compaction",
            "id": "k1",
            "parentId": "r1",
            "summary": "so far",
            "firstKeptEntryId": "a1",
            "tokensBefore": 5000,
        }
        events = told("pi", (*PI, compaction))
        assert of_kind(events, Compacted)[0].tokens_before == 5000
        assert now(events) == ["k1", "a1", "r1"]

    def test_an_entry_kept_from_on_may_be_no_message(self):
        compaction = {"type": "compaction", "id": "k1", "parentId": "r1", "firstKeptEntryId": "e3"}
        assert now(told("pi", (*PI, compaction)))[1:] == ["a1", "r1"]

    def test_another_branch_leaves_this_one(self):
        other = {
            "type": "message",
            "id": "u2",
            "parentId": "e2",
            "message": {"role": "user", "content": "no"},
        }
        after = {
            "type": "message",
            "id": "u3",
            "parentId": "a1",
            "message": {"role": "user", "content": "b"},
        }
        assert now(told("pi", (*PI, other)))[-1:] == ["u2"]
        assert now(told("pi", (*PI, after))) == ["u1", "a1", "r1", "u3"]

    def test_other_roles_are_the_hosts_words(self):
        ran = {"role": "bashExecution", "command": "ls", "output": "a.txt"}
        entries = (
            PI[1],
            {"type": "message", "id": "b1", "parentId": None, "message": ran},
            {"type": "custom_message", "id": "b2", "parentId": "b1", "content": "note"},
            {
                "type": "message",
                "id": "b3",
                "parentId": "b2",
                "message": {"role": "developer", "content": "d"},
            },
        )
        messages = timeline(told("pi", entries)).messages
        assert [(m.content, m.is_meta) for m in messages] == [
            ("$ ls\na.txt", True),
            ("note", True),
            ("d", True),
        ]


class TestCline:
    def test_a_result_told_in_words_is_not_a_persons(self):
        assert [m.is_meta for m in timeline(told("cline")).messages] == [False, False, True]

    def test_a_session_has_metrics_and_a_summary_at_its_start(self):
        summary = {
            "id": "k1",
            "role": "user",
            "content": [text("Context summary")],
            "metadata": {"kind": "compaction_summary", "tokensBefore": 21919},
        }
        reply = {
            "id": "a1",
            "role": "assistant",
            "content": [text("hello")],
            "ts": 1767323045000,
            "modelInfo": {"id": "mistral"},
            "metrics": {"inputTokens": 120, "outputTokens": 10, "cacheReadTokens": 100},
        }
        session = {"sessionId": "s", "system_prompt": "be good", "messages": [summary, reply]}
        events = told("cline", session)
        assert of_kind(events, Compacted)[0].tokens_before == 21919
        assert now(events) == ["k1", "a1"]
        assert timeline(events).last_usage.report == Reported(
            "a1",
            {"prompt_tokens": 120, "completion_tokens": 10, "cached_tokens": 100},
            model="mistral",
            timestamp="2026-01-02T03:04:05+00:00",
        )
        assert timeline(events).facts == Described(session_id="s", system="be good")

    def test_the_screen_keeps_requests_and_their_usage(self):
        events = told("cline-ui")
        assert shape(events) == [("user", "<task>fix it</task>"), ("assistant", "looking")]
        assert of_kind(events, Reported)[0].usage == {
            "input_tokens": 10,
            "output_tokens": 5,
            "cache_read_input_tokens": 900,
        }


class TestSweAgent:
    def test_what_stands_in_the_users_place_later_is_what_tools_said(self):
        assert [(m.role, m.is_meta) for m in timeline(told("swe-agent")).messages] == [
            ("system", False),
            ("user", True),
            ("user", False),
            ("assistant", False),
            ("user", True),
        ]

    def test_without_a_history_the_steps_are_read(self):
        steps = {"trajectory": SWE["trajectory"], "info": {}}
        assert shape(told("swe-agent", steps)) == [("assistant", "look"), ("user", "a.txt")]

    def test_a_mini_trace_keeps_each_responses_usage(self):
        (report,) = of_kind(told("mini-swe-agent"), Reported)
        assert report.usage == {"prompt_tokens": 100, "completion_tokens": 9}
        assert (report.api_message_id, report.model) == ("gen-1", "gemini-3")


class TestOpenHands:
    def test_actions_are_calls_and_observations_their_results(self):
        assert shape(told("openhands")) == [
            ("user", (text("fix it"),)),
            ("user", (text("rules\n\ngit"),)),
            ("assistant", (text("look"), use("c1", "bash", command="ls"))),
            ("assistant", (use("c2", "bash", command="pwd"),)),
            ("user", (result("c1", "a.txt"),)),
            ("user", (result("c2", "denied", is_error=True),)),
            ("assistant", (text("done"),)),
        ]

    def test_actions_of_one_response_report_its_usage_once(self):
        assert [r.api_message_id for r in of_kind(told("openhands"), Reported)] == ["gen-1"]

    def test_each_task_starts_from_nothing(self):
        events = told("openhands", (OPENHANDS, {**OPENHANDS, "instance_id": "task-2"}))
        assert of_kind(events, Rewound) == [Rewound(None)]
        assert len(timeline(events).messages) == 7
        assert timeline(events).facts.session_id == "task-2"

    def test_older_files_keep_pairs_without_calls(self):
        history = [
            [
                hands(0, source="user", action="message", args={"content": "fix it"}),
                {"observation": "null"},
            ],
            [
                hands(1, action="run", args={"command": "ls"}),
                {"observation": "run", "content": "a.txt"},
            ],
            [
                hands(2, action="message", args={"content": "done"}),
                {"observation": "null", "content": ""},
            ],
        ]
        assert shape(told("openhands", {"history": history})) == [
            ("user", (text("fix it"),)),
            ("assistant", (use("call-0-3", "run", command="ls"),)),
            ("user", (result("call-0-3", "a.txt"),)),
            ("assistant", (text("done"),)),
        ]

    def test_a_condensation_puts_its_summary_where_it_says(self):
        condensed = hands(
            9,
            action="condensation",
            args={
                "forgotten_event_ids": [3, 4, 5, 6, 7],
                "summary": "tried ls",
                "summary_offset": 1,
            },
        )
        events = told("openhands", {**OPENHANDS, "history": [*OPENHANDS["history"], condensed]})
        assert [content for _, content in shape(events)] == [
            (text("fix it"),),
            (text("tried ls"),),
            (text("done"),),
        ]


def test_a_request_to_the_messages_api_is_read_with_its_system_and_tools():
    events = told("anthropic")
    assert timeline(events).facts == Described(
        model="claude-opus-4-6", system="be good", tools=({"name": "Read", "input_schema": {}},)
    )
    assert of_kind(events, Reported)[0].usage == {"input_tokens": 9, "output_tokens": 3}
    assert shape(events)[0] == ("user", "fix it")


def test_messages_may_stand_one_a_line():
    data = json_lines({"role": "user", "content": "hi"}, {"role": "assistant", "content": "yo"})
    assert shape(events_of(data, "anthropic")) == [("user", "hi"), ("assistant", "yo")]


def test_an_edited_message_without_an_id_gets_another_one():
    ids = [now(told("cline", [{"role": "user", "content": text}]))[0] for text in ("one", "two")]
    assert ids[0] != ids[1]
    assert len(CLINE) == len(now(told("cline")))
