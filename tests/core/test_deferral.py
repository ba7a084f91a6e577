import pytest

from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.catalog import Catalog, register
from mcp_context_server.core.toolsearch.deferral import (
    Deferral,
    SearchMode,
    ServerTokens,
    deferral,
    listing,
    search_mode,
)

POLICY = Policy()


def tool(name: str, tokens: int = 500, **more: object) -> dict:
    return {"name": name, "input_schema": {"tokens": tokens}, **more}


def tally(tools) -> int:
    return sum(t["input_schema"]["tokens"] for t in tools)


def decide(*tools: dict, mode: str = "auto", window_tokens: int = 200_000) -> Deferral:
    catalog = register(Catalog(), tools, policy=POLICY)
    return deferral(
        catalog, window_tokens=window_tokens, tally=tally, policy=POLICY, mode=search_mode(mode)
    )


def many(count: int, tokens: int, server: str = "s") -> list[dict]:
    return [tool(f"mcp__{server}__t{i}", tokens) for i in range(count)]


@pytest.mark.requirement("TOOL-1")
def test_sixty_tools_of_500_tokens_are_deferred_in_a_window_of_200000():
    decided = decide(*many(60, 500))
    assert decided.active
    assert len(decided.deferred) == 60
    assert decided.loaded == ()
    assert decided.definition_tokens == 30_000
    assert decided.threshold_tokens == 20_000
    assert decided.reason == (
        "60 tools not marked for deferral take 30000 tokens, over the threshold of 20000: "
        "they are deferred."
    )


@pytest.mark.requirement("TOOL-1")
@pytest.mark.parametrize(("tokens", "active"), [(90, False), (100, False), (110, True)])
def test_tools_are_deferred_where_they_take_over_a_tenth_of_the_window(tokens: int, active: bool):
    decided = decide(*many(100, tokens), window_tokens=100_000)
    assert decided.active is active
    assert (len(decided.deferred), len(decided.loaded)) == ((100, 0) if active else (0, 100))


def test_the_reason_is_given_where_nothing_is_deferred():
    assert decide(*many(10, 100)).reason == (
        "10 tools not marked for deferral take 1000 tokens, within the threshold of 20000: "
        "nothing is deferred."
    )
    assert decide().reason == "No registered tool may be deferred, so every definition is loaded."
    assert decide(*many(60, 500), mode="false").reason == (
        "Tool search is off, so every definition stands in the prompt."
    )


def test_each_server_s_share_is_told_largest_first():
    servers = [t for n in range(7) for t in many(15, 600 + n, f"s{n}")]
    decided = decide(*servers, tool("Own", 50))
    rows = tuple(
        ServerTokens(server=f"s{n}", tools=15, tokens=15 * (600 + n)) for n in range(6, -1, -1)
    )
    assert decided.servers == (*rows, ServerTokens(server="", tools=1, tokens=50))
    assert decided.definition_tokens == sum(row.tokens for row in decided.servers)


def test_marked_tools_are_deferred_however_small_and_the_others_stay():
    decided = decide(tool("a", 10, defer_loading=True), tool("b", 10), tool("c", 10))
    assert (decided.active, decided.deferred, decided.loaded) == (True, ("a",), ("b", "c"))


def test_marked_tools_do_not_push_the_others_out():
    decided = decide(*(tool(f"m{i}", 500, defer_loading=True) for i in range(60)), tool("b", 10))
    assert (len(decided.deferred), decided.loaded) == (60, ("b",))


@pytest.mark.requirement("TOOL-1")
def test_always_loaded_tools_stay_whatever_they_take():
    always = (
        tool("a", 30_000, defer_loading=False),
        tool("b", 30_000, _meta={"anthropic/alwaysLoad": True}),
        tool("c", 30_000, type="web_search_20250305"),
    )
    assert not decide(*always).active
    decided = decide(*always, *many(60, 500))
    assert (decided.loaded, len(decided.deferred)) == (("a", "b", "c"), 60)
    assert decide(*always, mode="true").active is False


@pytest.mark.parametrize(
    ("setting", "mode"),
    [
        (None, SearchMode()),
        ("", SearchMode()),
        ("auto", SearchMode()),
        (" AUTO ", SearchMode()),
        ("auto:5", SearchMode(percent=5)),
        ("auto:0", SearchMode(percent=0)),
        ("auto:100", SearchMode(percent=100)),
        ("auto:2.5", SearchMode(percent=2.5)),
        ("true", SearchMode("on")),
        ("1", SearchMode("on")),
        ("False", SearchMode("off")),
        ("0", SearchMode("off")),
        ("auto:", None),
        ("auto:101", None),
        ("auto:-3", None),
        ("auto:٣", None),
        ("sometimes", None),
    ],
)
def test_the_setting_is_auto_a_percentage_on_or_off(setting: str | None, mode: SearchMode | None):
    assert search_mode(setting) == mode


@pytest.mark.parametrize(
    ("setting", "deferred"), [("auto:1", 10), ("auto:3", 0), ("true", 10), ("false", 0)]
)
@pytest.mark.requirement("TOOL-1")
def test_the_mode_moves_the_threshold_or_decides_outright(setting: str, deferred: int):
    assert len(decide(*many(10, 500), mode=setting).deferred) == deferred


def test_off_loads_even_marked_tools_since_nothing_could_find_them():
    assert decide(tool("a", defer_loading=True), mode="false").loaded == ("a",)


def test_a_listing_gives_purposes_while_they_fit_and_names_in_any_case():
    tools = [tool("a", description="Adds numbers. Slowly."), tool("b"), tool("c")]
    catalog = register(Catalog(), tools, policy=POLICY)
    names = ("a", "b", "gone")
    assert listing(catalog, names, policy=POLICY, tally=len) == "a: Adds numbers.\nb"
    tight = Policy(tool_listing_tokens=5)
    assert listing(catalog, names, policy=tight, tally=len) == "a\nb"
