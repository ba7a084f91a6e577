"""Rules about one block alone: a table of small checks by block type.

A check looks at a block where it stands and says what is wrong, or nothing.
"""

from collections.abc import Callable, Iterator, Mapping

from mcp_context_server.core.rules.naming import is_identifier
from mcp_context_server.core.rules.request import Fault, Request, Site

Check = Callable[[Site, Request], str | None]

SERVER_CALL = "srvtoolu_"
"""How the API's own call ids begin."""


def _text_is_text(site: Site, request: Request) -> str | None:
    return _missing(site, "text")


def _text_is_not_empty(site: Site, request: Request) -> str | None:
    return "is empty: remove the block" if site.block.get("text") == "" else None


def _text_is_not_blank(site: Site, request: Request) -> str | None:
    text = site.block.get("text")
    blank = isinstance(text, str) and text.isspace()
    return "is nothing but whitespace: remove the block" if blank else None


def _no_user_citations(site: Site, request: Request) -> str | None:
    cited = site.role == "user" and site.block.get("citations")
    return "only an assistant's text may have citations: remove the field" if cited else None


def _call_has_an_id(site: Site, request: Request) -> str | None:
    return _missing(site, "id")


def _input_is_an_object(site: Site, request: Request) -> str | None:
    given = site.block.get("input")
    return None if isinstance(given, dict) else "`input` is not an object: wrap it in one"


def _name_fits(site: Site, request: Request) -> str | None:
    name = site.block.get("name")
    if isinstance(name, str) and fits(name, request.terms.traits.max_name_chars):
        return None
    most = request.terms.traits.max_name_chars
    return f"`name` must be 1 to {most} letters, digits, `_` or `-`: rename the tool"


def _call_id_fits(site: Site, request: Request) -> str | None:
    id = site.block.get("id")
    unfit = isinstance(id, str) and not is_identifier(id)
    return (
        "`id` must be letters, digits, `_` or `-`: rename it, in its result too" if unfit else None
    )


def _call_is_the_assistants(site: Site, request: Request) -> str | None:
    elsewhere = site.role in ("user", "system")
    return "only an assistant message may hold calls: move or remove it" if elsewhere else None


def _client_call_id(site: Site, request: Request) -> str | None:
    id = site.block.get("id")
    server = isinstance(id, str) and id.startswith(SERVER_CALL)
    return f"a `{SERVER_CALL}…` id belongs to a `server_tool_use` block" if server else None


def _result_names_a_call(site: Site, request: Request) -> str | None:
    return _missing(site, "tool_use_id")


def _client_result_id(site: Site, request: Request) -> str | None:
    id = site.block.get("tool_use_id")
    server = isinstance(id, str) and id.startswith(SERVER_CALL)
    return "the API answers its own calls: remove this result" if server else None


def _result_is_the_users(site: Site, request: Request) -> str | None:
    elsewhere = site.role in ("assistant", "system")
    return "only a user message may hold results: move or remove it" if elsewhere else None


def fits(name: str, most_chars: int) -> bool:
    """Whether a tool may have this name."""
    return len(name) <= most_chars and is_identifier(name)


def _missing(site: Site, field: str) -> str | None:
    given = isinstance(site.block.get(field), str)
    return None if given else f"`{field}` must be a string: give one or remove the block"


BLOCK_CHECKS: Mapping[str, tuple[tuple[str, Check], ...]] = {
    "text": (
        ("R0", _text_is_text),
        ("R15", _text_is_not_empty),
        ("R16", _text_is_not_blank),
        ("R23", _no_user_citations),
    ),
    "tool_use": (
        ("R0", _call_has_an_id),
        ("R1", _call_is_the_assistants),
        ("R7", _input_is_an_object),
        ("R8", _name_fits),
        ("R8", _call_id_fits),
        ("R40", _client_call_id),
    ),
    "server_tool_use": (("R0", _call_has_an_id), ("R7", _input_is_an_object)),
    "mcp_tool_use": (("R0", _call_has_an_id), ("R7", _input_is_an_object)),
    "tool_result": (
        ("R0", _result_names_a_call),
        ("R4", _result_is_the_users),
        ("R40", _client_result_id),
    ),
}
"""By the type of a block that stands directly in a message."""

NESTED_CHECKS: Mapping[str, tuple[tuple[str, Check], ...]] = {
    "text": (("R0", _text_is_text), ("R15", _text_is_not_empty)),
}
"""By the type of a block that stands in another block's content."""


def check_blocks(request: Request) -> Iterator[Fault]:
    """Every block against the checks of its type."""
    for table, sites in ((BLOCK_CHECKS, request.sites), (NESTED_CHECKS, request.nested)):
        for kind, checks in table.items():
            for site in sites.get(kind, ()):
                for rule, check in checks:
                    what = check(site, request)
                    if what is not None:
                        yield Fault(rule, site.path, what)
