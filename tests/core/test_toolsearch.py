import pytest
from conversations import assistant, call, result, text, user
from hypothesis import given, settings
from hypothesis import strategies as st

from mcp_context_server.core.policy import Policy
from mcp_context_server.core.toolsearch.catalog import Catalog, register, withdraw
from mcp_context_server.core.toolsearch.deferral import Deferral, deferral
from mcp_context_server.core.toolsearch.search import (
    CatalogIndex,
    Found,
    Select,
    Words,
    parse,
    remember,
    resolve,
    schema_reminder,
    search,
    without_stale_references,
)

POLICY = Policy()
BROWSER, CODEX, READ = (
    "mcp__browser__browser_open",
    "mcp__plugin_x__ask_codex",
    "mcp__fs__readTextFile",
)
THREE = (
    {"name": BROWSER, "description": "Open a page.", "input_schema": {"type": "object"}},
    {"name": CODEX, "description": "Put a question to Codex.", "inputSchema": {"type": "object"}},
    {"name": READ, "description": "Contents of a file on disk."},
)
OFFICE = (
    {"name": "mcp__gmail__send_email", "description": "Send an email message to someone."},
    {"name": "mcp__gmail__list_labels", "description": "Every label of the mailbox."},
    {"name": "mcp__slack__post_message", "description": "Post a message to a channel."},
    {"name": "mcp__slack__list_channels", "description": "The channels of a workspace."},
    {"name": "mcp__calendar__create_event", "description": "Put an event into a calendar."},
    {
        "name": "mcp__weather__forecast",
        "description": "What the sky will do.",
        "input_schema": {
            "properties": {"city": {"description": "Name of the town"}, "days": {"type": "integer"}}
        },
    },
    {"name": "mcp__wx__search", "description": "Find pages.", "search_hint": "internet google"},
    {"name": "mcp__epa__air_quality_index"},
    {"name": "mcp__cn__tianqi", "description": "查询城市的天气预报。"},
)


def catalog(*tools: dict, **more: object) -> Catalog:
    return register(Catalog(), tools, policy=POLICY, **more)


def tally(tools) -> int:
    return sum(len(repr(tool)) for tool in tools) // 4


def find(catalog: Catalog, query: str, policy: Policy = POLICY, **more: object) -> Found:
    return search(catalog, query, index=CatalogIndex(policy), policy=policy, tally=tally, **more)


def all_but(catalog: Catalog, *always: str) -> Deferral:
    """Every tool deferred but these."""
    loaded = [{**d, "defer_loading": d["name"] not in always} for d in catalog.definitions]
    marked = register(Catalog(), loaded, policy=POLICY)
    return deferral(marked, window_tokens=1000, tally=tally, policy=POLICY)


def first(catalog: Catalog, query: str) -> str:
    return find(catalog, query).matches[0]


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    ("query", "matches"),
    [
        ("browser_open", (BROWSER,)),
        ("ask_codex", (CODEX,)),
        ("ask codex", (CODEX,)),
        ("read text", (READ,)),
        ("ReadTextFile", (READ,)),
        ("read_text_file", (READ,)),
        ("MCP__FS__READTEXTFILE", (READ,)),
        ("fs read text file", (READ,)),
        ("select:browser_open", (BROWSER,)),
        ("select:mcp__browser__browser_open,ask_codex", (BROWSER, CODEX)),
        ("select: Ask-Codex , readtextfile", (CODEX, READ)),
        ("SELECT:open", (BROWSER,)),
        ("+browser open", (BROWSER,)),
        ("+plugin_x", (CODEX,)),
        ("+codex page file", (CODEX,)),
        ("mcp__browser", (BROWSER,)),
    ],
)
def test_a_name_is_found_in_any_spelling(query: str, matches: tuple[str, ...]):
    found = find(catalog(*THREE), query)
    assert found.matches[: len(matches)] == matches
    assert (found.nearest, found.note) == ((), "")


@pytest.mark.requirement("TOOL-3")
def test_a_miss_lists_the_nearest_names_and_the_servers_that_may_have_it():
    waiting = withdraw(catalog(*THREE, pending_servers=["jira"]), "db")
    assert find(waiting, "zzz", deferral=all_but(waiting)) == Found(
        matches=(),
        query="zzz",
        total_deferred_tools=3,
        pending_mcp_servers=("jira", "db"),
        tools=(),
        tool_references=(),
        nearest=(BROWSER, CODEX, READ),
        note=(
            f"No tool matches 'zzz'. Nearest names: {BROWSER}, {CODEX}, {READ}. "
            "Tools may be missing while these servers are: jira (connecting), db (disconnected)."
        ),
    )


def test_a_selected_name_that_is_missing_is_told_beside_those_that_are_found():
    found = find(catalog(*THREE), "select:browser_open,browser_close")
    assert found.matches == (BROWSER,)
    assert found.nearest[0] == BROWSER
    assert found.note.startswith(f"No tool matches 'browser_close'. Nearest names: {BROWSER}")


@pytest.mark.requirement("TOOL-3")
def test_the_answer_holds_definitions_and_references_ready_for_a_result():
    found = find(
        catalog(*THREE), "select:ask_codex,browser_open", deferral=all_but(catalog(*THREE), BROWSER)
    )
    empty = {"type": "object"}
    assert found == Found(
        matches=(CODEX, BROWSER),
        query="select:ask_codex,browser_open",
        total_deferred_tools=2,
        pending_mcp_servers=(),
        tools=(
            {"name": CODEX, "description": "Put a question to Codex.", "input_schema": empty},
            {"name": BROWSER, "description": "Open a page.", "input_schema": empty},
        ),
        tool_references=(
            {"type": "tool_reference", "tool_name": CODEX},
            {"type": "tool_reference", "tool_name": BROWSER},
        ),
        nearest=(),
        note="",
    )


@pytest.mark.requirement("TOOL-2")
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("send email", "mcp__gmail__send_email"),
        ("emails I want to send", "mcp__gmail__send_email"),
        ("slack message", "mcp__slack__post_message"),
        ("labels", "mcp__gmail__list_labels"),
        ("town", "mcp__weather__forecast"),
        ("days", "mcp__weather__forecast"),
        ("google", "mcp__wx__search"),
        ("calender event", "mcp__calendar__create_event"),
        ("schedule an appointment", "mcp__calendar__create_event"),
        ("post mesage to slack", "mcp__slack__post_message"),
        ("天气", "mcp__cn__tianqi"),
        ("城市 预报", "mcp__cn__tianqi"),
        ("SLACK CHANNELS", "mcp__slack__list_channels"),
        ("listChannels", "mcp__slack__list_channels"),
        ("sendemail", "mcp__gmail__send_email"),
        ("airquality", "mcp__epa__air_quality_index"),
    ],
)
def test_words_are_looked_for_in_every_field(query: str, name: str):
    assert first(catalog(*OFFICE), query) == name


@pytest.mark.requirement("TOOL-2")
def test_a_required_word_leaves_out_what_does_not_have_it():
    office = catalog(*OFFICE)
    assert set(find(office, "+slack email").matches) == {
        "mcp__slack__post_message",
        "mcp__slack__list_channels",
    }
    assert find(office, "+slack +workspace").matches == ("mcp__slack__list_channels",)
    assert find(office, "+lack").matches == find(office, "+slack").matches
    missed = find(office, "+teams message")
    assert missed.matches == ()
    assert missed.nearest
    assert missed.note.startswith("No tool matches 'teams message'.")


@pytest.mark.requirement("TOOL-2")
def test_five_tools_are_found_unless_another_number_is_asked_for():
    many = catalog(*({"name": f"mcp__s__file_{n}"} for n in range(80)))
    counts = [len(find(many, "file", max_results=n).matches) for n in (None, 1, 7, 0, -3, 10**9)]
    assert counts == [5, 1, 7, 5, 1, 50]


def test_a_tool_s_own_name_comes_before_better_scores():
    loud = {
        "name": "mcp__b__mail_all",
        "description": "Mail mail. All mail, all.",
        "server": "mail",
    }
    quiet = {"name": "mcp__a__mailAll", "description": "Other."}
    assert first(catalog(loud, quiet), "mailall") in ("mcp__a__mailAll", "mcp__b__mail_all")
    decoy = {"name": "mcp__all__whoami_who_am_i", "description": "Who am I? Who am I?"}
    assert first(catalog(decoy, {"name": "mcp__x__who_am_i"}), "who am i") == "mcp__x__who_am_i"


@pytest.mark.requirement("TOOL-2")
def test_a_tool_s_own_name_comes_first_with_a_plus_too():
    two = catalog({"name": "hotel_book"}, {"name": "hotel_booking"})
    assert find(two, "+hotel_booking").matches == ("hotel_booking", "hotel_book")
    assert find(two, "+booking +hotel").matches[0] == "hotel_book"


def test_only_deferred_tools_are_ranked_but_any_may_be_named():
    office = catalog(*OFFICE)
    post = "mcp__slack__post_message"
    waiting = all_but(office, *(name for name in office.by_name if name != post))
    assert find(office, "message email", deferral=waiting).matches == (post,)
    for name in ("send_email", "select:send_email"):
        assert find(office, name, deferral=waiting).matches[0] == "mcp__gmail__send_email"


def test_a_name_that_two_servers_share_means_both():
    shared = catalog({"name": "mcp__a__search"}, {"name": "mcp__b__search"})
    assert resolve(shared, "search") == ("mcp__a__search", "mcp__b__search")
    assert resolve(shared, "b__search") == ("mcp__b__search",)
    assert resolve(shared, "arch") == ()


@pytest.mark.requirement("TOOL-2")
def test_the_last_parts_of_a_name_mean_it_where_no_other_ends_so():
    two = catalog({"name": "mcp__a__browser_open"}, {"name": "mcp__b__file_open"})
    assert resolve(two, "file_open") == ("mcp__b__file_open",)
    assert resolve(two, "open") == ()
    assert find(two, "select:open").matches == ()


def test_definitions_are_given_while_they_fit_and_the_first_always():
    big = catalog(*({"name": f"t{n}", "description": "x" * 4000} for n in range(3)))
    found = find(big, "select:t0,t1,t2", Policy(tool_answer_tokens=2_100))
    assert [tool["name"] for tool in found.tools] == ["t0", "t1"]
    assert found.matches == ("t0", "t1", "t2")
    assert found.note == "1 definitions are left out for size; select: them by name."
    assert len(find(big, "select:t2", Policy(tool_answer_tokens=1)).tools) == 1


@pytest.mark.parametrize(
    "query",
    [
        "",
        " ",
        "+",
        "+++ +",
        "select:",
        "select:,,",
        "\x00\x1b[31m",
        "(((.*?)+)+)$[",
        "\\",
        "a" * 10_000,
        "file " * 10_000,
        "+file " * 5_000,
        "select:" + "x," * 10_000,
        "\ud800 file",
        "🙂",
        "SELECT *; DROP TABLE tools",
    ],
)
def test_a_hostile_query_is_answered(query: str):
    found = find(catalog(*THREE), query)
    assert len(found.query) <= POLICY.tool_query_chars
    assert found.matches or found.note
    assert Found.model_validate(found.model_dump()) == found


def test_an_empty_query_is_told_what_to_give():
    told = "The query has no words. Give some, or +required words, or select:name,name."
    assert [find(catalog(*THREE), q).note for q in ("", "+", "select:")] == [told] * 3


def test_an_empty_catalogue_says_that_there_are_no_tools():
    found = find(Catalog(unavailable={"fs": "disconnected"}), "read a file")
    assert found.note == (
        "No tool matches 'read a file'. There are none. "
        "Tools may be missing while these servers are: fs (disconnected)."
    )


@given(st.text(max_size=60))
@settings(max_examples=60)
def test_any_query_finds_only_tools_of_the_catalogue(query: str):
    office = catalog(*OFFICE)
    found = find(office, query)
    assert set(found.matches) | set(found.nearest) <= set(office.by_name)
    assert len(set(found.matches)) == len(found.matches)


@given(st.sampled_from([*THREE, *OFFICE]))
def test_each_tool_is_found_by_its_own_name(tool: dict):
    everything = catalog(*THREE, *OFFICE)
    bare = tool["name"].rpartition("__")[2]
    for query in (tool["name"], bare, bare.upper(), bare.replace("_", " "), f"select:{bare}"):
        assert first(everything, query) == tool["name"]


def test_an_index_follows_the_catalogue_through_every_change():
    index = CatalogIndex(POLICY)

    def matches(catalog: Catalog, query: str) -> tuple[str, ...]:
        return search(catalog, query, index=index, policy=POLICY, tally=tally).matches

    three = catalog(*THREE)
    assert matches(three, "codex question") == (CODEX,)
    more = register(three, OFFICE, policy=POLICY)
    assert matches(more, "label")[0] == "mcp__gmail__list_labels"
    gone = withdraw(more, "gmail")
    assert matches(gone, "label") == ()
    back = register(gone, OFFICE, policy=POLICY)
    assert matches(back, "label")[0] == "mcp__gmail__list_labels"
    renamed = {**OFFICE[1], "description": "Tags."}
    other = register(back, [renamed], policy=POLICY, replace=True)
    assert matches(other, "tags")[0] == "mcp__gmail__list_labels"
    assert matches(other, "mailbox") == ()


def test_an_index_kept_through_many_changes_finds_what_a_new_one_finds():
    index, turning = CatalogIndex(POLICY), catalog(*OFFICE)
    for n in range(100):
        tool = {**OFFICE[4], "description": f"Put event {n} into a calendar."}
        turning = register(turning, [tool], policy=POLICY, replace=True)
        kept = search(turning, f"event {n}", index=index, policy=POLICY, tally=tally)
        assert kept == find(turning, f"event {n}")


def test_queries_are_read_as_names_or_as_words():
    assert parse("select: a ,'b',a", POLICY) == Select(("a", "b"))
    assert parse("+slack post +a", POLICY) == Words("slack post a", ("slack", "a"))
    assert parse("selection:a", POLICY) == Words("selection:a")


@pytest.mark.requirement("TOOL-4")
def test_found_tools_are_remembered_in_order_while_the_catalogue_has_them():
    three = catalog(*THREE)
    found = remember((), find(three, "select:ask_codex").matches, three)
    found = remember(found, [READ, CODEX], three)
    assert found == (CODEX, READ)
    assert remember(found, [], withdraw(three, "fs")) == (CODEX,)


def test_a_call_of_a_tool_that_is_not_loaded_is_answered_with_its_schema():
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    tools = catalog({"name": READ, "input_schema": schema})
    reminder = schema_reminder(tools, "readTextFile")
    assert reminder is not None
    assert f"select:{READ}" in reminder
    assert reminder.endswith('{"type":"object","properties":{"path":{"type":"string"}}}')
    assert schema_reminder(tools, "write") is None


def test_the_catalogue_does_not_depend_on_history():
    three = catalog(*THREE)
    before = find(three, "ask codex")
    remember((), before.matches, three)
    assert find(three, "ask codex") == before


def test_references_to_tools_that_are_gone_are_taken_out():
    def searched(*content: dict):
        return (
            user("go"),
            assistant(call("s", "tool_search", query="q")),
            user(result("s", list(content)), text("and?")),
        )

    def reference(name: str) -> dict:
        return {"type": "tool_reference", "tool_name": name}

    def is_stale(name: str) -> bool:
        return name not in (BROWSER, CODEX, READ)

    mixed = searched(reference(READ), reference("gone"), text("found"))
    assert without_stale_references(mixed, is_stale) == searched(reference(READ), text("found"))
    gone = text("[The tools found here are no longer available.]")
    assert without_stale_references(searched(reference("gone")), is_stale) == searched(gone)
    same = searched(reference(READ))
    assert without_stale_references(same, is_stale)[2] is same[2]
