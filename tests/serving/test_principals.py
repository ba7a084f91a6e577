"""One principal's conversations do not exist for another, whatever the server offers.

What is tried is what the server lists, so that a new tool, resource or prompt is tried too.
"""

import itertools
import json
import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from mcp import Client, MCPError
from mcp.types import PromptReference, ResourceTemplateReference
from serving.harness import serving
from test_tools import service

from mcp_context_server.errors import SessionNotFound
from mcp_context_server.service.sessions import Opening

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("SERVE-4")]

ALICE, BOB = "alice-token-0123456789", "bob-token-0123456789"
SECRET = "xyzzy-4711"
MESSAGES = [
    {"role": "user", "content": f"The word is {SECRET}.", "id": "alice-message"},
    {"role": "assistant", "content": f"I keep {SECRET}."},
    {"role": "user", "content": "Thank you."},
]
TOOL = {"name": f"find_{SECRET}", "description": f"Finds {SECRET}.", "input_schema": {}}

ways = pytest.mark.parametrize(
    ("transport", "mode"), [("http", "auto"), ("http", "legacy"), ("sse", "auto")]
)


class Both:
    """Alice, who has a conversation, and Bob, who wants it."""

    def __init__(self, alice: Client, bob: Client) -> None:
        self.alice, self.bob = alice, bob
        self.hers = self.his = ""

    async def open(self) -> None:
        self.hers = (await call(self.alice, "session_open"))["session_id"]
        self.his = (await call(self.bob, "session_open"))["session_id"]
        await call(self.alice, "append_messages", session_id=self.hers, messages=MESSAGES)
        await call(self.alice, "register_tools", session_id=self.hers, tools=[TOOL])
        await call(
            self.alice,
            "session_memory_update",
            session_id=self.hers,
            section="Current State",
            content=f"- {SECRET}",
        )

    @property
    def nobodys(self) -> str:
        """An id that no session has, in the form of hers."""
        return re.sub(r"[A-Za-z0-9]", "q", self.hers.removeprefix("ctx_")).join(("ctx_", ""))

    def same(self, told: str) -> str:
        """An answer without the id that it was asked with."""
        return told.replace(self.hers, "ID").replace(self.nobodys, "ID")

    async def state(self) -> dict[str, Any]:
        """Everything of hers that could be changed."""
        status = await call(self.alice, "context_status", session_id=self.hers, detail=True)
        memory = await call(self.alice, "session_memory_read", session_id=self.hers)
        return {"status": status, "memory": memory}


async def call(client: Client, tool: str, **arguments: Any) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    assert not result.is_error, result.content[0].text
    return result.structured_content


async def told(client: Client, tool: str, arguments: dict[str, Any]) -> str:
    """All that a client learns from a call."""
    try:
        result = await client.call_tool(tool, arguments)
    except MCPError as error:
        return f"{error}"
    return result.model_dump_json()


@asynccontextmanager
async def both(tmp_path, transport: str, mode: str) -> AsyncGenerator[Both]:
    tokens = tmp_path / "tokens"
    tokens.write_text(f"alice {ALICE}\nbob {BOB}\n")
    tokens.chmod(0o600)
    async with (
        serving(auth_token_file=tokens) as server,
        server.client(transport, mode=mode, token=ALICE) as alice,
        server.client(transport, mode=mode, token=BOB) as bob,
    ):
        them = Both(alice, bob)
        await them.open()
        yield them


SAMPLES = {"string": "x", "integer": 1, "number": 1, "boolean": True, "array": [], "object": {}}


def needed(schema: dict[str, Any]) -> dict[str, Any]:
    """Arguments that a tool can't do without."""
    properties = schema["properties"]
    return {name: SAMPLES[properties[name]["type"]] for name in schema.get("required", ())}


def texts(schema: dict[str, Any]) -> list[str]:
    """Names of arguments that take text, which may be an id or a reference."""
    return [n for n, of in schema["properties"].items() if '"string"' in json.dumps(of)]


@ways
async def test_no_tool_knows_the_session_of_another(tmp_path, transport, mode):
    async with both(tmp_path, transport, mode) as them:
        before = await them.state()
        tools = (await them.bob.list_tools()).tools
        assert len(tools) >= 13
        for tool in tools:
            arguments = needed(tool.input_schema)
            foreign, unknown = [
                await told(them.bob, tool.name, arguments | {"session_id": session_id})
                for session_id in (them.hers, them.nobodys)
            ]
            assert them.same(foreign) == them.same(unknown), tool.name
            assert "No session" in foreign, tool.name
        assert await them.state() == before


@ways
async def test_no_argument_of_a_tool_reaches_into_the_session_of_another(tmp_path, transport, mode):
    async with both(tmp_path, transport, mode) as them:
        before = await them.state()
        for tool in (await them.bob.list_tools()).tools:
            base = needed(tool.input_schema) | {"session_id": them.his}
            for name in set(texts(tool.input_schema)) - {"session_id"}:
                for value in (reach(them) for reach in REACHING):
                    many = tool.input_schema["properties"][name].get("type") == "array"
                    tried = base | {name: [value] if many else value}
                    if name == "summary":
                        tried |= {"dry_run": True}
                    assert SECRET not in await told(them.bob, tool.name, tried), (tool.name, name)
        assert await them.state() == before


@ways
async def test_no_resource_shows_the_session_of_another(tmp_path, transport, mode):
    async with both(tmp_path, transport, mode) as them:
        before = await them.state()
        for resource in (await them.bob.list_resources()).resources:
            assert_hides(await seen(them.bob, resource.uri), them.hers)
        templates = (await them.bob.list_resource_templates()).resource_templates
        assert templates
        for template in templates:
            for with_query in (True, False):
                foreign, unknown = [
                    them.same(await seen(them.bob, uri))
                    for session_id in (them.hers, them.nobodys)
                    for uri in [filled(template.uri_template, session_id, with_query=with_query)]
                ]
                assert foreign == unknown, template.uri_template
                assert SECRET not in foreign
        assert await them.state() == before


def filled(template: str, session_id: str, *, with_query: bool) -> str:
    """A template's URI with that id in every place."""
    query = rf"?\1={session_id}" if with_query else ""
    return re.sub(r"\{\w+\}", session_id, re.sub(r"\{\?(\w+)[^}]*\}", query, template))


async def seen(client: Client, uri: str) -> str:
    """All that a client learns from reading a resource."""
    try:
        return (await client.read_resource(uri)).model_dump_json()
    except MCPError as error:
        return f"{error.error}"


def assert_hides(seen: str, session_id: str) -> None:
    assert SECRET not in seen
    assert session_id not in seen


@ways
async def test_no_prompt_tells_of_the_session_of_another(tmp_path, transport, mode):
    async with both(tmp_path, transport, mode) as them:
        before = await them.state()
        for prompt in (await them.bob.list_prompts()).prompts:
            answers = []
            for session_id in (them.hers, them.nobodys):
                named = {"session_id": session_id, "scope": "all"}
                given = {a.name: named.get(a.name, "x") for a in prompt.arguments or ()}
                with pytest.raises(MCPError) as refused:
                    await them.bob.get_prompt(prompt.name, given)
                answers.append(them.same(f"{refused.value.error}"))
            assert answers[0] == answers[1], prompt.name
            try:
                seen = (await them.bob.get_prompt(prompt.name, {})).model_dump_json()
            except MCPError as error:
                seen = f"{error}"
            assert_hides(seen, them.hers)
        assert await them.state() == before


@ways
async def test_no_argument_of_a_prompt_reaches_into_the_session_of_another(
    tmp_path, transport, mode
):
    async with both(tmp_path, transport, mode) as them:
        before, tried = await them.state(), 0
        for prompt in (await them.bob.list_prompts()).prompts:
            names = {argument.name for argument in prompt.arguments or ()}
            for name, value in itertools.product(names - {"session_id"}, REACHING):
                given = {"session_id": them.his, name: value(them)}
                try:
                    seen = (await them.bob.get_prompt(prompt.name, given)).model_dump_json()
                except MCPError as error:
                    seen = f"{error.error}"
                assert SECRET not in seen, (prompt.name, name)
                tried += 1
        assert tried >= 3
        assert await them.state() == before


REACHING = (lambda them: them.hers, lambda them: "alice-message", lambda them: "word")
"""What Bob may give where a text is asked for: her session, a message of hers, a word in it."""


@ways
async def test_no_completion_gives_the_session_of_another_away(tmp_path, transport, mode):
    async with both(tmp_path, transport, mode) as them:
        prompts = (await them.bob.list_prompts()).prompts
        templates = (await them.bob.list_resource_templates()).resource_templates
        asked = [
            (PromptReference(type="ref/prompt", name=prompt.name), argument.name)
            for prompt in prompts
            for argument in prompt.arguments or ()
        ] + [
            (ResourceTemplateReference(type="ref/resource", uri=template.uri_template), name)
            for template in templates
            for name in re.findall(r"\w+", "".join(re.findall(r"{[^}]*}", template.uri_template)))
        ]
        found = set()
        starts = ("", them.hers[:8], them.hers)
        for (reference, name), start in itertools.product(asked, starts):
            argument, given = {"name": name, "value": start}, {"session_id": them.hers}
            answer = await them.bob.complete(reference, argument, given)
            found.update(answer.completion.values)
        assert them.hers not in found
        assert not any(SECRET in each or "alice" in each for each in found)
        assert them.his in found


async def test_nobody_is_told_of_changes_in_the_session_of_another(tmp_path):
    """Whatever can be listened to; a change of his own comes last, and is the only one heard."""
    async with both(tmp_path, "http", "auto") as them:
        templates = (await them.bob.list_resource_templates()).resource_templates
        resources = (await them.bob.list_resources()).resources
        hers = [filled(t.uri_template, them.hers, with_query=False) for t in templates]
        own = f"context://sessions/{them.his}/memory"
        heard = []
        async with anyio.create_task_group() as tasks:

            async def listen(started: anyio.Event) -> None:
                uris = [*hers, *(resource.uri for resource in resources), own]
                async with them.bob.listen(resource_subscriptions=uris) as changes:
                    started.set()
                    async for change in changes:
                        heard.append(change.uri)
                        if change.uri == own:
                            break

            started = anyio.Event()
            tasks.start_soon(listen, started)
            await started.wait()
            await change_everything(them.alice, them.hers)
            note = {"section": "Current State", "content": "- new"}
            await call(them.bob, "session_memory_update", session_id=them.his, **note)
        assert len(hers) >= 5
        assert set(heard) - {"context://sessions"} == {own}
        assert heard.count("context://sessions") <= 1, "of his own change"


async def change_everything(client: Client, session_id: str) -> None:
    """A change of each kind: history, memory, view, boundaries, tools."""
    named = {"session_id": session_id}
    note = {"section": "Current State", "content": "- new"}
    more = [{"role": "assistant", "content": "more " * 50}, *MESSAGES[2:]]
    await call(client, "session_memory_update", **named, **note)
    await call(client, "append_messages", **named, messages=more)
    await call(client, "register_tools", **named, tools=[TOOL | {"name": "another"}])
    await call(client, "session_open", **named, rules=["be brief"])
    await call(client, "compact", **named, summarizer="extractive")


async def test_who_comes_without_a_name_has_no_part_in_anybodys_session():
    """Two servers may share a store, of which one asks for no token."""
    keeper = service()
    live, _ = await keeper.open(Opening(principal="alice"))
    for other in ("", "bob"):
        with pytest.raises(SessionNotFound):
            await keeper.load(live.record.session_id, other)
        assert await keeper.store.records(other) == []
