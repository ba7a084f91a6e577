import pytest
from conversations import assistant, call, conversations, image, result, text, user
from hypothesis import given, settings
from transcripts.samples import OPENAI, URL

from mcp_context_server.core.messages import Message, open_calls, walk_blocks
from mcp_context_server.transcripts.openai_chat import from_messages, is_openai, to_messages

PICTURE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}


def test_a_chat_becomes_messages_with_the_results_of_a_round_together():
    assert [message.wire() for message in to_messages(OPENAI)] == [
        {"role": "system", "content": "be good"},
        {"role": "user", "content": "fix it"},
        {
            "role": "assistant",
            "content": [
                {"type": "tool_use", "id": "c1", "name": "read_file", "input": {"path": "a"}},
                {"type": "tool_use", "id": "c2", "name": "ls", "input": {}},
            ],
        },
        {"role": "user", "content": [result("c1", "text"), result("c2", "a.txt")]},
        {"role": "assistant", "content": "done"},
    ]


def test_a_chat_comes_back_as_it_was():
    chat = [
        message | {"tool_calls": [*message["tool_calls"][:1]]}
        if "tool_calls" in message
        else message
        for message in OPENAI
        if message.get("tool_call_id") != "c2"
    ]
    assert from_messages(to_messages(chat)) == chat


@pytest.mark.parametrize(
    ("arguments", "input"),
    [
        ('{"a": 1}', {"a": 1}),
        ("", {}),
        ("  ", {}),
        (None, {}),
        ({"a": 1}, {"a": 1}),
        ("{broken", {"_raw": "{broken"}),
        ("[1]", {"_raw": "[1]"}),
        ('{"a":1} x', {"_raw": '{"a":1} x'}),
    ],
)
def test_arguments_are_an_object_whatever_was_written(arguments, input):
    chat = [
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "function": {"name": "f", "arguments": arguments}}],
        }
    ]
    assert to_messages(chat)[0].blocks[0]["input"] == input


def test_broken_arguments_come_back_as_they_were():
    chat = [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{broken"}}
            ],
        }
    ]
    assert from_messages(to_messages(chat)) == chat


def test_ids_that_the_api_does_not_take_are_mapped_alike_on_both_sides():
    chat = [
        {
            "role": "assistant",
            "tool_calls": [{"id": i, "function": {"name": "a.b"}} for i in ("x:1", "x.1")],
        },
        {"role": "tool", "tool_call_id": "x:1", "content": "one"},
        {"role": "tool", "tool_call_id": "x.1", "content": "two"},
    ]
    messages = to_messages(chat)
    assert open_calls(messages) == ()
    assert len(set(messages[0].calls)) == 2
    assert messages[0].blocks[0]["name"] == "a_b"


def test_a_call_named_twice_is_one_call():
    block = call("c1", "f")
    chat = [
        {
            "role": "assistant",
            "content": [block],
            "tool_calls": [{"id": "c1", "function": {"name": "f"}}],
        }
    ]
    assert to_messages(chat)[0].calls == ("c1",)


def test_the_old_function_calls_are_paired():
    chat = [
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "one"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "two"},
    ]
    assert open_calls(to_messages(chat)) == ()


@pytest.mark.parametrize(
    ("part", "block"),
    [
        ({"type": "image_url", "image_url": {"url": URL, "detail": "low"}}, PICTURE),
        ({"type": "image_url", "image_url": URL}, PICTURE),
        (
            {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}},
            {"type": "image", "source": {"type": "url", "url": "https://x.test/a.png"}},
        ),
        (
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA"}},
            {
                "type": "document",
                "source": {"type": "base64", "media_type": "application/pdf", "data": "AAAA"},
            },
        ),
        ({"type": "refusal", "refusal": "no"}, text("no")),
        ({"type": "input_audio", "input_audio": {}}, {"type": "input_audio", "input_audio": {}}),
    ],
)
def test_parts_become_blocks_and_unknown_ones_stay(part, block):
    (message,) = to_messages([{"role": "user", "content": [part]}])
    assert message.blocks == (block,)


def test_messages_keep_what_their_sender_said_about_them():
    raw = {"role": "user", "content": "hi", "id": "m1", "pinned": True, "usage": None}
    assert to_messages([raw]) == (Message(id="m1", role="user", content="hi", pinned=True),)


def test_messages_that_are_no_chat_pass_through():
    raw = [{"role": "user", "content": [result("c1", "x")]}, {"role": "assistant", "content": "ok"}]
    assert [message.wire() for message in to_messages(raw)] == raw
    assert not is_openai(raw)
    assert is_openai(OPENAI)


def test_pictures_in_results_follow_and_failures_are_told():
    found = result("c1", [text("see"), image()], is_error=True)
    chat = from_messages([assistant(call("c1")), user(found, text("look"))])
    assert [message["role"] for message in chat] == ["assistant", "tool", "user"]
    assert chat[1]["content"] == "Error: see"
    assert [part["type"] for part in chat[2]["content"]] == ["image_url", "text"]


def test_what_a_chat_can_not_say_is_left_out():
    thought = {"type": "thinking", "thinking": "hm", "signature": "AAAA"}
    server = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}}
    assert from_messages([assistant(thought), assistant(thought, server, text("found"))]) == [
        {"role": "assistant", "content": "found"}
    ]


def test_chunks_of_a_response_are_one_message_again():
    chat = from_messages([assistant(text("a")), assistant(call("c1")), assistant(call("c2"))])
    assert [len(message["tool_calls"]) for message in chat] == [2]


@settings(max_examples=40)
@given(conversations)
def test_every_call_of_a_chat_is_answered_straight_after_it(view):
    chat = from_messages(view)
    for at, message in enumerate(chat):
        asked = [c["id"] for c in message.get("tool_calls", ())]
        answers = chat[at + 1 : at + 1 + len(asked)]
        assert [answer.get("tool_call_id") for answer in answers] == asked


@settings(max_examples=40)
@given(conversations)
def test_calls_and_results_survive_the_way_there_and_back(view):
    back = to_messages(from_messages(view))
    client_side = ("tool_use", "tool_result")
    there, again = (
        [
            (b["type"], b.get("id") or b.get("tool_use_id"), b.get("input"))
            for _, b in walk_blocks(messages)
            if b["type"] in client_side
        ]
        for messages in (view, back)
    )
    assert again == there
