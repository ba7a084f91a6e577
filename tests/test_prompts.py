"""The prompts and the completions, through a real MCP client in both protocol eras."""

import pytest
from calls import ERAS, answer, service
from mcp import Client, MCPError
from mcp.types import PromptReference, ResourceTemplateReference

from mcp_context_server.server import build_server
from mcp_context_server.service.sessions import Opening

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("SERVE-3")]


@pytest.fixture(params=ERAS)
async def client(request):
    async with Client(build_server(service()), mode=request.param) as client:
        yield client


async def told(client: Client, prompt: str, /, **arguments: str) -> str:
    (message,) = (await client.get_prompt(prompt, arguments)).messages
    return message.content.text


PROMPT = {"role": "user", "content": "find the leak", "id": "p1"}
SAID = {"role": "assistant", "content": "It leaks in a.py. " + "word " * 3_000, "id": "a1"}
AGAIN = {"role": "user", "content": "mend it", "id": "p2"}


async def conversation(client: Client, session_id: str = "s") -> None:
    await answer(client, "session_open", session_id=session_id)
    messages = [PROMPT, SAID, AGAIN]
    await answer(client, "append_messages", session_id=session_id, messages=messages)


async def test_every_prompt_has_a_title_a_description_and_says_what_its_arguments_are(client):
    prompts = (await client.list_prompts()).prompts
    assert [prompt.name for prompt in prompts] == ["compact", "handoff", "resume", "update_memory"]
    for prompt in prompts:
        assert prompt.title
        assert prompt.description
        assert all(argument.description for argument in prompt.arguments)
        assert not any(argument.required for argument in prompt.arguments)
        assert "session_id" in [argument.name for argument in prompt.arguments]


async def test_a_prompt_acts_on_the_session_it_is_given_or_on_the_callers_own(client):
    await conversation(client)
    assert "session_id='s'" in await told(client, "compact", session_id="s", instructions="Keep x.")
    own = (await answer(client, "context_status"))["session_id"]
    assert f"session_id={own!r}" in await told(client, "handoff")
    assert "Keep x." in await told(client, "handoff", instructions="Keep x.")


async def test_a_part_is_asked_for_by_its_pivot(client):
    await conversation(client)
    text = await told(client, "compact", session_id="s", scope="up_to", pivot_message_id="p2")
    assert "ticket=" in text


async def test_a_conversation_that_was_handed_over_is_resumed_in_another(client):
    turns = [{**each, "id": f"{each['id']}{n}"} for n in range(12) for each in (PROMPT, SAID)]
    await answer(client, "session_open", session_id="s")
    await answer(client, "append_messages", session_id="s", messages=turns)
    done = await answer(client, "compact", session_id="s", summarizer="extractive")
    assert done["status"] == "done"
    for arguments in ({"session_id": "s"}, {}):
        assert "find the leak" in await told(client, "resume", **arguments)


MISTAKES = {
    "a prompt that is none": ("forget", {}, "forget"),
    "an argument that is none": ("compact", {"sesion_id": "s"}, "sesion_id"),
    "a scope that is none": ("compact", {"scope": "half"}, "all, from, up_to"),
    "a session nobody opened": ("compact", {"session_id": "nope"}, "session_open"),
    "its memory": ("update_memory", {"session_id": "nope"}, "session_open"),
    "its summary": ("resume", {"session_id": "nope"}, "session_open"),
    "no summary": ("resume", {}, "handoff"),
    "a pivot that is none": ("compact", {"scope": "from", "pivot_message_id": "x"}, "'x'"),
    "no pivot": ("compact", {"scope": "from", "session_id": "s"}, "pivot"),
}


@pytest.mark.parametrize("case", MISTAKES)
async def test_what_is_wrong_with_a_prompt_is_told_with_what_to_do(client, case):
    await conversation(client)
    prompt, arguments, hint = MISTAKES[case]
    with pytest.raises(MCPError, match=hint) as error:
        await client.get_prompt(prompt, arguments)
    assert error.value.error.code == -32602


# ── completions ──────────────────────────────────────────────────────────────


async def completed(client: Client, ref, name: str, start: str = "", **given: str) -> list[str]:
    context = given or None
    result = await client.complete(ref, {"name": name, "value": start}, context_arguments=context)
    return result.completion.values


COMPACT = PromptReference(name="compact")
MEMORY = ResourceTemplateReference(uri="context://sessions/{session_id}/memory")


async def test_session_ids_complete_newest_first_in_prompts_and_in_addresses(client):
    for session_id in ("one", "two", "Other"):
        await answer(client, "session_open", session_id=session_id)
    assert await completed(client, COMPACT, "session_id") == ["Other", "two", "one"]
    assert await completed(client, MEMORY, "session_id", "o") == ["Other", "one"]
    assert await completed(client, MEMORY, "session_id", "nope") == []


async def test_only_a_hundred_are_told_and_how_many_there_are():
    own = service()
    for number in range(130):
        await own.open(Opening(session_id=f"s{number}"))
    async with Client(build_server(own)) as client:
        found = (await client.complete(MEMORY, {"name": "session_id", "value": ""})).completion
    assert (len(found.values), found.total, found.has_more) == (100, 130, True)


async def test_scopes_complete_and_so_do_the_messages_that_may_be_a_pivot(client):
    await conversation(client)
    assert await completed(client, COMPACT, "scope") == ["all", "from", "up_to"]
    assert await completed(client, COMPACT, "pivot_message_id", session_id="s") == ["p2", "p1"]
    assert await completed(client, COMPACT, "pivot_message_id", session_id="nope") == []
    assert await completed(client, COMPACT, "instructions", "Ke") == []
    assert await completed(client, COMPACT, "after") == []


async def test_what_is_not_offered_cannot_be_completed(client):
    refs = (PromptReference(name="nope"), ResourceTemplateReference(uri="context://nope/{id}"))
    for ref in refs:
        with pytest.raises(MCPError, match="nope") as error:
            await completed(client, ref, "session_id")
        assert error.value.error.code == -32602


@pytest.mark.parametrize("era", ["legacy", "auto"])
async def test_the_handshake_tells_that_arguments_complete(era):
    async with Client(build_server(service()), mode=era) as client:
        assert client.server_capabilities.completions is not None
