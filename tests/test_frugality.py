"""What the server's own presence costs a model's window."""

import pytest
from calls import answer, service
from mcp import Client

from mcp_context_server.core.tokens.estimates import FAMILIES
from mcp_context_server.server import INSTRUCTIONS, build_server

pytestmark = pytest.mark.anyio

MOST_TOKENS = {"agent": 1_300, "all": 3_000}
"""What the definitions of a set of tools may take of a window, whatever the tokenizer."""
MODELS = ("", "claude-sonnet-4-5", "claude-sonnet-5", "gpt-5", "gemini-2.5-pro")


@pytest.mark.requirement("SERVE-2")
@pytest.mark.parametrize("tools", MOST_TOKENS)
@pytest.mark.parametrize("model", MODELS)
async def test_what_a_model_reads_of_the_definitions_is_within_the_budget(tools, model):
    async with Client(build_server(service(), tools=tools)) as client:
        listed = (await client.list_tools()).tools
        definitions = [
            {"name": t.name, "description": t.description, "input_schema": t.input_schema}
            for t in listed
        ]
        cost = await answer(client, "estimate_tokens", tools=definitions, model=model)
    assert 300 < cost["tokens"] <= MOST_TOKENS[tools]


def test_the_models_asked_about_are_of_the_families_that_count_most():
    assert set(FAMILIES) >= {"claude", "claude-4-7", "gpt-5", "gemini", "general"}


async def test_the_instructions_are_under_150_words_and_name_only_tools_that_are_offered():
    async with Client(build_server(service())) as client:
        names = {tool.name for tool in (await client.list_tools()).tools}
        assert client.instructions == INSTRUCTIONS
    words = INSTRUCTIONS.replace(":", " ").replace(",", " ").replace(".", " ").split()
    assert len(words) < 150
    assert {word for word in words if "_" in word} - {"session_id"} <= names
