"""Resources, prompts, completions and notices over the network, for two principals at once."""

import asyncio
import json
from contextlib import asynccontextmanager, suppress

import anyio
import pytest
from calls import answer
from mcp import Client, MCPError
from mcp.types import PromptReference, ResourceTemplateReference, ResourceUpdatedNotification
from serving.harness import serving

from mcp_context_server.errors import SessionNotFound

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.requirement("SERVE-3"),
    # What the older era subscribes with is deprecated in the SDK's client, not in its wire.
    pytest.mark.filterwarnings("ignore:resources/:mcp.MCPDeprecationWarning"),
]

MINE, THEIRS = "m" * 32, "t" * 32
PARTS = ("status", "view", "transcript", "boundaries", "memory")

WAYS = [("http", "legacy"), ("http", "auto"), ("sse", "legacy"), ("sse", "auto")]


@asynccontextmanager
async def two_clients(tmp_path, transport: str, mode: str):
    """A client of each of two principals."""
    tokens = tmp_path / "tokens"
    tokens.write_text(f"me {MINE}\nthem {THEIRS}\n")
    tokens.chmod(0o600)
    async with (
        serving(auth_token_file=tokens) as there,
        there.client(transport, mode=mode, token=MINE) as mine,
        there.client(transport, mode=mode, token=THEIRS) as theirs,
    ):
        yield mine, theirs


async def refusal(request) -> tuple[int, str]:
    with pytest.raises(MCPError) as refused:
        await request
    return refused.value.error.code, refused.value.error.message


async def listed(client: Client) -> list[str]:
    (content,) = (await client.read_resource("context://sessions")).contents
    return [session["session_id"] for session in json.loads(content.text)["sessions"]]


@pytest.mark.requirement("SERVE-4")
@pytest.mark.parametrize(("transport", "mode"), WAYS)
async def test_nothing_of_anothers_session_can_be_read_listed_or_guessed(tmp_path, transport, mode):
    async with two_clients(tmp_path, transport, mode) as (mine, theirs):
        own = (await answer(mine, "session_open"))["session_id"]
        messages = [{"role": "user", "content": "find the leak"}]
        await answer(mine, "append_messages", session_id=own, messages=messages)
        assert own in await listed(mine)
        assert own not in await listed(theirs)
        for asked in (own, "nope"):
            answers = [
                *[
                    await refusal(theirs.read_resource(f"context://sessions/{asked}/{part}"))
                    for part in PARTS
                ],
                *[
                    await refusal(theirs.get_prompt(prompt, {"session_id": asked}))
                    for prompt in ("compact", "handoff", "resume", "update_memory")
                ],
            ]
            told = str(SessionNotFound(asked))
            assert answers == [(-32602, told)] * len(answers)
        code, told = await refusal(theirs.get_prompt("resume", {}))
        assert (code, "`handoff`" in told) == (-32602, True)
        for ref, name in (
            (PromptReference(name="compact"), "session_id"),
            (ResourceTemplateReference(uri="context://sessions{?after}"), "after"),
        ):
            argument = {"name": name, "value": own[:6]}
            assert own in (await mine.complete(ref, argument)).completion.values
            assert own not in (await theirs.complete(ref, argument)).completion.values
        pivot = {"name": "pivot_message_id", "value": ""}
        given = {"session_id": own}
        ref = PromptReference(name="compact")
        assert (await mine.complete(ref, pivot, context_arguments=given)).completion.values
        assert not (await theirs.complete(ref, pivot, context_arguments=given)).completion.values


async def remember(client: Client, session_id: str) -> None:
    update = {"section": "Learnings", "content": "x"}
    await answer(client, "session_memory_update", session_id=session_id, **update)


@pytest.mark.requirement("SERVE-4", "MEM-4")
async def test_a_stream_tells_of_the_principals_own_sessions_only(tmp_path):
    async with two_clients(tmp_path, "http", "auto") as (mine, theirs):
        a, b = [(await answer(client, "session_open"))["session_id"] for client in (mine, theirs)]
        uris = [f"context://sessions/{session}/memory" for session in (a, b)]
        async with theirs.listen(resource_subscriptions=uris) as changes:
            await remember(mine, a)
            await remember(theirs, b)
            with anyio.fail_after(30):
                assert (await anext(aiter(changes))).uri == uris[1]


async def test_a_principal_holds_so_many_streams_and_no_more(tmp_path, monkeypatch):
    monkeypatch.setattr("mcp_context_server.subscriptions.listening.MOST_STREAMS", 1)
    uris = ["context://sessions"]
    async with two_clients(tmp_path, "http", "auto") as (mine, theirs):
        async with mine.listen(resource_subscriptions=uris):
            with pytest.raises(MCPError, match="Too many streams"):
                async with mine.listen(resource_subscriptions=uris):
                    pass
            async with theirs.listen(resource_subscriptions=uris):
                pass
        with anyio.fail_after(30):
            while True:  # until the server has seen that the first one is closed
                with suppress(MCPError):
                    async with mine.listen(resource_subscriptions=uris):
                        break


@pytest.mark.requirement("SERVE-4", "MEM-4")
async def test_anothers_session_can_not_be_subscribed_to(tmp_path):
    async with two_clients(tmp_path, "http", "legacy") as (mine, theirs):
        own = (await answer(mine, "session_open"))["session_id"]
        code, told = await refusal(theirs.subscribe_resource(f"context://sessions/{own}/memory"))
        assert (code, told) == (-32602, str(SessionNotFound(own)))
        await mine.subscribe_resource(f"context://sessions/{own}/memory")


@pytest.mark.requirement("MEM-4")
@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_an_older_client_is_told_over_the_network(transport):
    told: asyncio.Queue[str] = asyncio.Queue()

    async def hear(message: object) -> None:
        if isinstance(message, ResourceUpdatedNotification):
            await told.put(str(message.params.uri))

    async with (
        serving() as there,
        there.client(transport, mode="legacy", message_handler=hear) as client,
    ):
        own = (await answer(client, "session_open"))["session_id"]
        uri = f"context://sessions/{own}/memory"
        await client.subscribe_resource(uri)
        # Over HTTP the stream for notices is opened beside the requests; until then none is told.
        while told.empty():
            await remember(client, own)
            with anyio.move_on_after(0.5):
                assert await told.get() == uri
                break
