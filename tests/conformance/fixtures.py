"""What the official conformance suite expects a server to have, added to this product's server.

The suite looks for tools, resources and prompts of fixed names, whose texts it prescribes.
They say nothing about context; with them the suite can try the whole protocol on the
transports, middleware and handlers that the product itself serves with.
"""

import asyncio
import base64
import json
from typing import Annotated, Any

from mcp import MCPError
from mcp.server import MCPServer
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError
from mcp.server.mcpserver.prompts import Prompt
from mcp.server.mcpserver.prompts.base import UserMessage
from mcp.types import (
    MISSING_REQUIRED_CLIENT_CAPABILITY,
    AudioContent,
    CallToolResult,
    ClientCapabilities,
    CreateMessageRequest,
    CreateMessageRequestParams,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    EmptyResult,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    SamplingCapability,
    SamplingMessage,
    SetLevelRequestParams,
    TextContent,
    TextResourceContents,
)
from pydantic import Field

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5E"
    "rkJggg=="
)
WAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA="

Answer = CallToolResult | InputRequiredResult


def add_fixtures(server: MCPServer[Any]) -> None:
    """Register everything that the suite looks for."""
    for tool in (*CONTENT, *TALKING, *ASKING_BACK, *CHANGING):
        server.add_tool(tool, description=tool.__doc__, structured_output=False)
    _add_schema_tool(server)
    _add_header_tool(server)
    _add_resources(server)
    for prompt in PROMPTS:
        server.add_prompt(Prompt.from_function(prompt))
    low = server._lowlevel_server
    low.add_request_handler("logging/setLevel", SetLevelRequestParams, _set_level)


async def _set_level(ctx: Any, params: SetLevelRequestParams) -> EmptyResult:
    return EmptyResult()


def _text(text: str) -> CallToolResult:
    return CallToolResult(content=[TextContent(type="text", text=text)])


def _image() -> ImageContent:
    return ImageContent(type="image", data=PNG, mime_type="image/png")


def _embedded(uri: str, text: str, mime_type: str = "text/plain") -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)


# ── content ──────────────────────────────────────────────────────────────────


async def test_simple_text() -> Answer:
    """Text."""
    return _text("This is a simple text response for testing.")


async def test_image_content() -> Answer:
    """An image."""
    return CallToolResult(content=[_image()])


async def test_audio_content() -> Answer:
    """A sound."""
    return CallToolResult(content=[AudioContent(type="audio", data=WAV, mime_type="audio/wav")])


async def test_embedded_resource() -> Answer:
    """A resource inside the answer."""
    text = "This is an embedded resource content."
    return CallToolResult(content=[_embedded("test://embedded-resource", text)])


async def test_multiple_content_types() -> Answer:
    """Text, an image and a resource."""
    data = json.dumps({"test": "data", "value": 123}, separators=(",", ":"))
    mixed = _embedded("test://mixed-content-resource", data, "application/json")
    text = TextContent(type="text", text="Multiple content types test:")
    return CallToolResult(content=[text, _image(), mixed])


async def test_error_handling() -> Answer:
    """Fails."""
    message = "This tool intentionally returns an error for testing"
    raise ToolError(message)


CONTENT = (
    test_simple_text,
    test_image_content,
    test_audio_content,
    test_embedded_resource,
    test_multiple_content_types,
    test_error_handling,
)


# ── what a tool says and asks while it runs ──────────────────────────────────


async def test_tool_with_logging(ctx: Context) -> Answer:
    """Logs three times."""
    for message in ("Tool execution started", "Tool processing data", "Tool execution completed"):
        await ctx.info(message)
        await asyncio.sleep(0.02)
    return _text("Logged.")


async def test_logging_tool(ctx: Context) -> Answer:
    """Logs once, to who asked for it."""
    await ctx.info("Logged")
    return _text("Logged.")


async def test_tool_with_progress(ctx: Context) -> Answer:
    """Tells of its progress."""
    for progress in (0, 50, 100):
        await ctx.report_progress(progress, 100)
        await asyncio.sleep(0.02)
    return _text("Done.")


async def test_sampling(prompt: str, ctx: Context) -> Answer:
    """Asks the client's model."""
    asked = [SamplingMessage(role="user", content=TextContent(type="text", text=prompt))]
    said = await ctx.session.create_message(asked, max_tokens=100)
    return _text(f"LLM response: {said.content.text}")


async def test_elicitation(message: str, ctx: Context) -> Answer:
    """Asks the user for a name and an address."""
    described = {"username": "User's response", "email": "User's email address"}
    return await _elicited(
        ctx,
        message,
        {
            "properties": {n: {"type": "string", "description": d} for n, d in described.items()},
            "required": list(described),
        },
        "User response: ",
    )


async def test_elicitation_sep1034_defaults(ctx: Context) -> Answer:
    """Asks the user, with a default of each type."""
    properties = {
        "name": {"type": "string", "default": "John Doe"},
        "age": {"type": "integer", "default": 30},
        "score": {"type": "number", "default": 95.5},
        "status": {
            "type": "string",
            "enum": ["active", "inactive", "pending"],
            "default": "active",
        },
        "verified": {"type": "boolean", "default": True},
    }
    return await _elicited(ctx, "Check the defaults", {"properties": properties})


async def test_elicitation_sep1330_enums(ctx: Context) -> Answer:
    """Asks the user to choose, in each of the ways."""
    options = ["option1", "option2", "option3"]
    titled = [
        {"const": f"value{n}", "title": f"{word} Option"}
        for n, word in enumerate(("First", "Second", "Third"), start=1)
    ]
    properties = {
        "untitledSingle": {"type": "string", "enum": options},
        "titledSingle": {"type": "string", "oneOf": titled},
        "legacyEnum": {
            "type": "string",
            "enum": ["opt1", "opt2", "opt3"],
            "enumNames": ["Option One", "Option Two", "Option Three"],
        },
        "untitledMulti": {"type": "array", "items": {"type": "string", "enum": options}},
        "titledMulti": {"type": "array", "items": {"anyOf": titled}},
    }
    return await _elicited(ctx, "Choose", {"properties": properties})


async def _elicited(
    ctx: Context, message: str, schema: dict[str, Any], says: str = "Elicitation completed: "
) -> CallToolResult:
    asked = {"type": "object", **schema}
    said = await ctx.session.elicit_form(message, asked, related_request_id=ctx.request_id)
    return _text(f"{says}action={said.action}, content={json.dumps(said.content)}")


TALKING = (
    test_tool_with_logging,
    test_logging_tool,
    test_tool_with_progress,
    test_sampling,
    test_elicitation,
    test_elicitation_sep1034_defaults,
    test_elicitation_sep1330_enums,
)


# ── what a tool needs from the client before it can answer ───────────────────


def _form(message: str, **properties: str) -> ElicitRequest:
    schema = {
        "type": "object",
        "properties": {name: {"type": type_} for name, type_ in properties.items()},
        "required": list(properties),
    }
    return ElicitRequest(params=ElicitRequestFormParams(message=message, requested_schema=schema))


def _sample(text: str, max_tokens: int) -> CreateMessageRequest:
    asked = [SamplingMessage(role="user", content=TextContent(type="text", text=text))]
    params = CreateMessageRequestParams(messages=asked, max_tokens=max_tokens)
    return CreateMessageRequest(params=params)


def _answers(ctx: Context, *keys: str) -> list[Any] | None:
    """What the client answered, if it is all there."""
    given = ctx.input_responses or {}
    return [given[key] for key in keys] if all(key in given for key in keys) else None


async def test_input_required_result_elicitation(ctx: Context) -> Answer:
    """Greets a user who says a name."""
    if answers := _answers(ctx, "user_name"):
        name = (getattr(answers[0], "content", None) or {}).get("name")
        if name:
            return _text(f"Hello, {name}!")
    return InputRequiredResult(
        input_requests={"user_name": _form("What is your name?", name="string")}
    )


async def test_input_required_result_sampling(ctx: Context) -> Answer:
    """Answers what the client's model says."""
    if answers := _answers(ctx, "capital_question"):
        return _text(answers[0].content.text)
    asked = _sample("What is the capital of France?", 100)
    return InputRequiredResult(input_requests={"capital_question": asked})


async def test_input_required_result_list_roots(ctx: Context) -> Answer:
    """Names the client's roots."""
    if answers := _answers(ctx, "client_roots"):
        return _text(", ".join(str(root.uri) for root in answers[0].roots))
    return InputRequiredResult(input_requests={"client_roots": ListRootsRequest()})


async def test_input_required_result_request_state(ctx: Context) -> Answer:
    """Gets its own state back."""
    if _answers(ctx, "confirm") and ctx.request_state == "the state":
        return _text("state-ok")
    asked = {"confirm": _form("Please confirm", ok="boolean")}
    return InputRequiredResult(input_requests=asked, request_state="the state")


async def test_input_required_result_tampered_state(ctx: Context) -> Answer:
    """Gets its own state back, and no other."""
    if _answers(ctx, "confirm"):
        return _text("state-ok")
    asked = {"confirm": _form("Please confirm", ok="boolean")}
    return InputRequiredResult(input_requests=asked, request_state="the state")


async def test_input_required_result_multiple_inputs(ctx: Context) -> Answer:
    """Needs three things at once."""
    if _answers(ctx, "user_name", "greeting", "client_roots"):
        return _text("All is there.")
    asked = {
        "user_name": _form("What is your name?", name="string"),
        "greeting": _sample("Generate a greeting", 50),
        "client_roots": ListRootsRequest(),
    }
    return InputRequiredResult(input_requests=asked, request_state="three things")


async def test_input_required_result_multi_round(ctx: Context) -> Answer:
    """Needs one thing after the other."""
    if _answers(ctx, "step2") and ctx.request_state == "second":
        return _text("Both are there.")
    if _answers(ctx, "step1") and ctx.request_state == "first":
        asked = {"step2": _form("Step 2: What is your favorite color?", color="string")}
        return InputRequiredResult(input_requests=asked, request_state="second")
    asked = {"step1": _form("Step 1: What is your name?", name="string")}
    return InputRequiredResult(input_requests=asked, request_state="first")


async def test_input_required_result_capabilities(ctx: Context) -> Answer:
    """Asks only for what the client says it can do."""
    can = ctx.client_capabilities or ClientCapabilities()
    asked: dict[str, Any] = {}
    if can.sampling is not None:
        asked["greeting"] = _sample("Generate a greeting", 50)
    if can.elicitation is not None:
        asked["user_name"] = _form("What is your name?", name="string")
    return InputRequiredResult(input_requests=asked) if asked else _text("Nothing to ask.")


async def test_streaming_elicitation(ctx: Context) -> Answer:
    """Asks for a name, and sends nothing else."""
    return await test_input_required_result_elicitation(ctx)


async def test_missing_capability(ctx: Context) -> Answer:
    """Needs a client that can sample."""
    can = ctx.client_capabilities
    if can is None or can.sampling is None:
        needed = ClientCapabilities(sampling=SamplingCapability())
        data = {"requiredCapabilities": needed.model_dump(by_alias=True, exclude_none=True)}
        raise MCPError(MISSING_REQUIRED_CLIENT_CAPABILITY, "This tool needs sampling.", data)
    return _text("The client can sample.")


ASKING_BACK = (
    test_input_required_result_elicitation,
    test_input_required_result_sampling,
    test_input_required_result_list_roots,
    test_input_required_result_request_state,
    test_input_required_result_tampered_state,
    test_input_required_result_multiple_inputs,
    test_input_required_result_multi_round,
    test_input_required_result_capabilities,
    test_streaming_elicitation,
    test_missing_capability,
)


# ── lists that change ────────────────────────────────────────────────────────


async def test_trigger_tool_change(ctx: Context) -> Answer:
    """Says that the tools changed."""
    await ctx.notify_tools_changed()
    return _text("Told.")


async def test_trigger_prompt_change(ctx: Context) -> Answer:
    """Says that the prompts changed."""
    await ctx.notify_prompts_changed()
    return _text("Told.")


CHANGING = (test_trigger_tool_change, test_trigger_prompt_change)


def _add_schema_tool(server: MCPServer[Any]) -> None:
    """A tool whose schema has keywords that a server must pass on as they are."""

    async def json_schema_2020_12_tool(name: str = "") -> Answer:
        """Has a schema with everything in it."""
        return _text(name)

    server.add_tool(json_schema_2020_12_tool, structured_output=False)
    tools = server._tool_manager._tools
    made = tools["json_schema_2020_12_tool"]
    street = {"street": {"type": "string"}, "city": {"type": "string"}}
    strings = {name: {"type": "string"} for name in ("name", "phone", "email")}
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "$defs": {"address": {"$anchor": "addressDef", "type": "object", "properties": street}},
        "properties": {
            **strings,
            "address": {"$ref": "#/$defs/address"},
            "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        },
        "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
        "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
        "then": {"required": ["phone"]},
        "else": {"required": ["email"]},
        "additionalProperties": False,
    }
    tools[made.name] = made.model_copy(update={"parameters": schema})


def _add_header_tool(server: MCPServer[Any]) -> None:
    """A tool with an argument that is told in a header as well."""

    async def test_custom_headers(
        region: Annotated[str, Field(json_schema_extra={"x-mcp-header": "Region"})] = "",
    ) -> Answer:
        """Takes an argument that proxies can read."""
        return _text(region)

    server.add_tool(test_custom_headers, structured_output=False)


# ── resources and prompts ────────────────────────────────────────────────────


def _add_resources(server: MCPServer[Any]) -> None:
    @server.resource("test://static-text", description="Text", mime_type="text/plain")
    def static_text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", description="A picture", mime_type="image/png")
    def static_binary() -> bytes:
        return base64.b64decode(PNG)

    @server.resource("test://watched-resource", description="Can be subscribed to")
    def watched() -> str:
        return "Watched."

    @server.resource("test://template/{id}/data", description="By id", mime_type="application/json")
    def by_id(id: str) -> str:
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def test_simple_prompt() -> str:
    """A prompt without arguments."""
    return "This is a simple prompt for testing."


def test_prompt_with_arguments(arg1: str, arg2: str) -> str:
    """A prompt with arguments."""
    return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"


def test_prompt_with_embedded_resource(resourceUri: str) -> list[UserMessage]:
    """A prompt with a resource in it."""
    embedded = _embedded(resourceUri, "Embedded resource content for testing.")
    return [UserMessage(embedded), UserMessage("Please process the embedded resource above.")]


def test_prompt_with_image() -> list[UserMessage]:
    """A prompt with an image in it."""
    return [UserMessage(_image()), UserMessage("Please analyze the image above.")]


async def test_input_required_result_prompt(ctx: Context) -> str | InputRequiredResult:
    """A prompt that needs to know more."""
    if answers := _answers(ctx, "user_context"):
        return f"Context: {(answers[0].content or {}).get('context')}"
    asked = {"user_context": _form("What context should the prompt use?", context="string")}
    return InputRequiredResult(input_requests=asked)


PROMPTS = (
    test_simple_prompt,
    test_prompt_with_arguments,
    test_prompt_with_embedded_resource,
    test_prompt_with_image,
    test_input_required_result_prompt,
)
