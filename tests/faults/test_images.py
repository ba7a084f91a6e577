"""Images and bytes: limits that have nothing to do with tokens."""

import json

import pytest
from conversations import assistant, call, image, result, text, user
from faulty import (
    faults,
    planned_view,
    shots,
)
from mcp import Client
from sessions import result_blocks, turn_for
from test_tools import answer, service

from mcp_context_server.core.edits import apply
from mcp_context_server.core.messages import Message
from mcp_context_server.core.pipeline import plan
from mcp_context_server.core.rules import validate
from mcp_context_server.core.stages.spill import spill
from mcp_context_server.core.summary.shown import without_media
from mcp_context_server.server import build_server

pytestmark = pytest.mark.anyio

CASES = {
    "the rule: a limit in bytes and number of its own, the newest stay": (
        "test_25_images_of_900_kilobytes_at_a_sixth_of_the_window",
        "test_markers_keep_the_place_and_the_text_around",
    ),
    "21 images, one of them 2,400 pixels wide": (
        "test_the_21st_image_does_not_lower_the_limit_of_a_large_one",
        "test_one_large_image_among_21_breaks_no_rule_wherever_it_stands",
    ),
    "an error about images, and the same request again": (
        "test_an_error_about_images_is_mended_without_a_model_and_not_sent_again",
    ),
    "an image of a wrong type that a compaction would send again": (
        "test_an_image_of_a_wrong_type_is_mended_and_never_reaches_a_summarizer",
    ),
    "63 images, 101 MiB at a third of the window": ("test_63_images_leave_the_newest",),
    "three compactions of twenty images each": (
        "test_three_compactions_of_twenty_images_each_copy_none_of_them",
        "test_an_edit_does_not_copy_the_images_it_takes_out",
    ),
    "600,000 characters of base64 as text": (
        "test_base64_that_came_as_text_is_spilled_not_quoted",
    ),
}
"""What users met, and the tests that it may not happen here."""


class TestImages:
    def test_25_images_of_900_kilobytes_at_a_sixth_of_the_window(self):
        turn = turn_for(shots(25, base64_chars=900_000), model="claude-opus-4-8")
        assert turn.used < 0.2 * turn.window.effective_window
        planned = plan(turn)
        sent = json.dumps([message.wire() for message in planned.session.view])
        assert len(sent) < 10_000_000
        assert planned.session.media.count == 8
        assert [each.stage for each in planned.applied] == ["media"]

    def test_the_21st_image_does_not_lower_the_limit_of_a_large_one(self):
        view = shots(21, width=2_400)
        planned = plan(turn_for(view, model="claude-opus-4-8"))
        assert planned.session.media.count <= 20
        assert faults(planned.session.view) == ()

    def test_63_images_leave_the_newest(self):
        after = planned_view(shots(63, base64_chars=1_600_000), model="claude-opus-4-8")
        left = [
            id
            for id, block in result_blocks(after).items()
            if any(inner["type"] == "image" for inner in block["content"])
        ]
        assert left == [f"c{n}" for n in range(58, 63)]

    def test_an_edit_does_not_copy_the_images_it_takes_out(self):
        planned = plan(turn_for(shots(25, base64_chars=900_000)))
        (edit,) = planned.edits
        assert len(edit.model_dump_json()) < 20_000

    def test_base64_that_came_as_text_is_spilled_not_quoted(self):
        import base64
        import random

        data = base64.b64encode(random.Random(2).randbytes(450_000)).decode()
        view = (user("go", id="p"), assistant(call("c1"), id="a"), user(result("c1", data), id="r"))
        (edit,) = spill(turn_for(view)).edits
        shown = result_blocks(apply(view, edit))["c1"]["content"]
        assert len(shown) < 500
        assert "600,000 characters" in shown

    def test_markers_keep_the_place_and_the_text_around(self):
        after = planned_view(shots(25))
        assert after[2].blocks[0]["content"][0] == text("shot 0")
        assert after[2].blocks[0]["content"][1]["type"] == "text"
        assert "640x480" in after[2].blocks[0]["content"][1]["text"]
        assert "/shots/0.png" in after[2].blocks[0]["content"][1]["text"]

    @pytest.mark.parametrize("large", [0, 10, 20])
    def test_one_large_image_among_21_breaks_no_rule_wherever_it_stands(self, large):
        view = list(shots(21))
        place = 2 + 2 * large
        view[place] = user(result(f"c{large}", [image(2_400, 480)]), id=f"r{large}")
        assert {fault.rule for fault in faults(view)} == {"R54"}
        after = planned_view(tuple(view), model="claude-opus-4-8")
        assert faults(after) == ()

    @pytest.mark.parametrize(
        "error",
        [
            "messages.3.content.0.image.source.base64: At least one of the image dimensions exceed "
            "max allowed size for many-image requests: 2000 pixels",
            "too many images and documents: 104 + 1 > 100",
        ],
    )
    async def test_an_error_about_images_is_mended_without_a_model_and_not_sent_again(self, error):
        async with Client(build_server(service())) as client:
            view = [message.wire() for message in shots(18)]
            await answer(client, "append_messages", messages=view)
            before = (await answer(client, "prepare_turn"))["messages"]
            step = await answer(client, "recover_overflow", error=error, status_code=400)
            assert (step["stage"], step["retry"]) == ("drop_media", True)
            after = (await answer(client, "prepare_turn"))["messages"]
        assert json.dumps(after).count('"image"') < json.dumps(before).count('"image"')

    async def test_an_image_of_a_wrong_type_is_mended_and_never_reaches_a_summarizer(self):
        wrong = image()
        wrong = {**wrong, "source": {**wrong["source"], "media_type": "image/jpeg"}}
        async with Client(build_server(service())) as client:
            messages = [
                {"role": "user", "content": [text("see"), wrong]},
                {"role": "assistant", "content": "seen"},
                {"role": "user", "content": "and?"},
            ]
            await answer(client, "append_messages", messages=messages)
            sent = (await answer(client, "prepare_turn"))["messages"]
        assert validate(sent) == ()
        shown = without_media((user(text("see"), wrong, id="u"),))
        assert not [b for message in shown for b in message.blocks if b["type"] == "image"]

    async def test_three_compactions_of_twenty_images_each_copy_none_of_them(self):
        made = service()
        async with Client(build_server(made)) as client:
            for part in range(3):
                view = shots(20, base64_chars=20_000)
                named = [renamed(message.wire(), f"{part}_") for message in view]
                await answer(client, "append_messages", session_id="", messages=named)
                done = await answer(client, "compact", summarizer="extractive")
                assert done["status"] == "done"
            session_id = done["session_id"]
        stored = await made.store.read(session_id)
        held = [isinstance(e, Message) for _, e in stored.entries if "AAAA" in str(e.model_dump())]
        assert held == [True] * 60


def renamed(message: dict, prefix: str) -> dict:
    """A wire message whose calls and results have other ids."""
    told = json.dumps(message).replace('"id": "c', f'"id": "{prefix}c')
    return json.loads(told.replace('"tool_use_id": "c', f'"tool_use_id": "{prefix}c'))
