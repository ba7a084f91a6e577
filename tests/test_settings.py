"""Start-up values: the reference system's variables, ours, and values that can't be used."""

from pathlib import Path

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from mcp_context_server.cli import main
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.window import window
from mcp_context_server.errors import InvalidInput
from mcp_context_server.settings import REFERENCE_VARIABLES, Settings, from_environment

HOME = Path("/home/ada/.local/share/mcp-context-server")
DEFAULT = Settings(store=f"sqlite:///{HOME}/sessions.db")


def read(flags: dict[str, object] | None = None, **environ: str) -> Settings:
    return from_environment(environ, flags=flags, data_dir=HOME)


def test_an_empty_environment_gives_the_defaults():
    assert read() == DEFAULT
    assert read().policy() == Policy()


def test_state_is_kept_in_the_users_data_directory():
    store = from_environment({}).store
    assert store.startswith("sqlite:///")
    assert Path(store.removeprefix("sqlite:///")).parts[-2:] == (
        "mcp-context-server",
        "sessions.db",
    )


@pytest.mark.requirement("WIN-7")
@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("DISABLE_COMPACT", "1", {"compact": False, "auto_compact": False}),
        ("DISABLE_COMPACT", "0", {}),
        ("DISABLE_AUTO_COMPACT", "true", {"auto_compact": False}),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "150000", {"auto_compact_window_tokens": 150_000}),
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "72.5", {"auto_compact_percent": 72.5}),
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "80%", {"auto_compact_percent": 80.0}),
        ("CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE", "120_000", {"blocking_limit_tokens": 120_000}),
        ("CLAUDE_CODE_MAX_OUTPUT_TOKENS", "16,000", {"max_output_tokens": 16_000}),
        ("CLAUDE_CODE_DISABLE_1M_CONTEXT", "yes", {"allow_1m": False}),
        ("CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS", "9000", {"file_read_tokens": 9_000}),
        ("ENABLE_CLAUDE_CODE_SM_COMPACT", "on", {"session_memory_compact": True}),
        ("DISABLE_CLAUDE_CODE_SM_COMPACT", "on", {"session_memory_compact": False}),
    ],
)
def test_the_reference_systems_variables_set_the_policy(name, text, expected):
    found = read(**{name: text})
    assert found.policy_overrides == expected
    assert found.policy() == Policy(**expected)
    assert found.warnings == ()


@pytest.mark.requirement("WIN-7")
@pytest.mark.parametrize(
    ("text", "expected"),
    [("auto", "auto"), ("auto:15", "auto:15"), ("1", "true"), ("True", "true"), ("0", "false")],
)
def test_tool_search_is_read(text, expected):
    assert read(ENABLE_TOOL_SEARCH=text).tool_search == expected


def test_every_variable_of_the_reference_system_is_honoured():
    assert {variable.name for variable in REFERENCE_VARIABLES} >= {
        "DISABLE_COMPACT",
        "DISABLE_AUTO_COMPACT",
        "CLAUDE_CODE_AUTO_COMPACT_WINDOW",
        "CLAUDE_AUTOCOMPACT_PCT_OVERRIDE",
        "CLAUDE_CODE_BLOCKING_LIMIT_OVERRIDE",
        "CLAUDE_CODE_MAX_OUTPUT_TOKENS",
        "CLAUDE_CODE_DISABLE_1M_CONTEXT",
        "CLAUDE_CODE_FILE_READ_MAX_OUTPUT_TOKENS",
        "ENABLE_CLAUDE_CODE_SM_COMPACT",
        "DISABLE_CLAUDE_CODE_SM_COMPACT",
        "ENABLE_TOOL_SEARCH",
    }


def test_disabling_session_memory_compaction_wins_over_enabling_it():
    found = read(ENABLE_CLAUDE_CODE_SM_COMPACT="1", DISABLE_CLAUDE_CODE_SM_COMPACT="1")
    assert not found.policy().session_memory_compact


def test_what_the_environment_says_reaches_the_window():
    policy = read(
        CLAUDE_CODE_AUTO_COMPACT_WINDOW="500000",
        CLAUDE_AUTOCOMPACT_PCT_OVERRIDE="50",
        CLAUDE_CODE_MAX_OUTPUT_TOKENS="10000",
    ).policy()
    drawn = window("claude-opus-4-8", policy)
    assert (drawn.context_window, drawn.max_output) == (500_000, 10_000)
    assert (drawn.effective_window, drawn.auto_compact) == (490_000, 245_000)


@pytest.mark.requirement("WIN-7")
@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("DISABLE_COMPACT", "maybe"),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "lots"),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "0"),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "-200000"),
        ("CLAUDE_CODE_AUTO_COMPACT_WINDOW", "9" * 5_000),
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "nan"),
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "0"),
        ("CLAUDE_AUTOCOMPACT_PCT_OVERRIDE", "101"),
        ("ENABLE_TOOL_SEARCH", "auto:101"),
        ("CLAUDE_CODE_SESSION_ID", "x" * 300),
        ("MCP_CONTEXT_TOOLS", "some"),
        ("MCP_CONTEXT_PORT", "70000"),
        ("MCP_CONTEXT_ZONE_PERCENTS", "[90, 80, 70]"),
        ("MCP_CONTEXT_ZONE_PERCENTS", "[" * 100_000),
        ("MCP_CONTEXT_NO_SUCH_THING", "1"),
        ("MCP_CONTEXT_WARNINGS", '["x"]'),
        ("MCP_CONTEXT_", "1"),
    ],
)
def test_a_value_that_cannot_be_used_is_ignored_with_a_warning_that_names_it(name, text):
    found = read(**{name: text})
    assert found.model_copy(update={"warnings": ()}) == DEFAULT
    assert [warning.split("=")[0].split(" ")[0] for warning in found.warnings] == [name]
    assert len(found.warnings[0]) < 300


def test_an_empty_value_is_as_good_as_none():
    assert read(DISABLE_COMPACT="", MCP_CONTEXT_STORE=" ", MCP_CONTEXT_ALLOWED_ROOTS="") == DEFAULT


def test_our_variables_set_any_setting_and_any_number_of_the_policy():
    found = read(
        MCP_CONTEXT_STORE="memory:",
        MCP_CONTEXT_TOOLS="agent",
        MCP_CONTEXT_ALLOWED_ROOTS="/srv/a:/srv/b",
        MCP_CONTEXT_REDACT="off",
        MCP_CONTEXT_SUMMARIZERS="extractive, agent",
        MCP_CONTEXT_ZONES="percent",
        MCP_CONTEXT_ZONE_PERCENTS="[70, 80, 90]",
        MCP_CONTEXT_AUTO_COMPACT_CAP_TOKENS="200000",
    )
    assert found == Settings(
        store="memory:",
        tools="agent",
        allowed_roots=(Path("/srv/a"), Path("/srv/b")),
        redact=False,
        summarizers=("extractive", "agent"),
        policy_overrides={
            "auto_compact_cap_tokens": 200_000,
            "zone_percents": (70.0, 80.0, 90.0),
            "zones": "percent",
        },
    )


def test_our_variables_win_over_the_reference_systems():
    found = read(DISABLE_AUTO_COMPACT="1", MCP_CONTEXT_AUTO_COMPACT="true")
    assert found.policy() == Policy()


def test_a_flag_wins_over_the_environment():
    found = read({"store": "memory:", "tools": None}, MCP_CONTEXT_STORE="sqlite:///a.db")
    assert (found.store, found.tools) == ("memory:", "all")


def test_a_bad_flag_is_an_error_that_names_it():
    with pytest.raises(InvalidInput, match="port"):
        read({"port": 70_000})


def test_keys_are_kept_and_never_shown():
    found = read(ANTHROPIC_API_KEY="sk-secret-1", MCP_CONTEXT_SUMMARY_URL="ada:sk-secret-2@there")
    assert found.anthropic_api_key is not None
    assert found.anthropic_api_key.get_secret_value() == "sk-secret-1"
    assert "sk-secret" not in repr(found)
    assert found.warnings[0].startswith("MCP_CONTEXT_SUMMARY_URL is ignored")


STORE_ADVICE = "Use sqlite:///PATH, postgresql://… or memory: as the store."


@pytest.mark.parametrize(
    "url", ["sqlite:/srv/tidy.db", "mysql://ada:sk-secret@db", "tidy.db", "[1", "{}"]
)
def test_a_store_that_is_named_but_cannot_be_used_is_refused_without_showing_it(url):
    with pytest.raises(InvalidInput) as refused:
        read(MCP_CONTEXT_STORE=url)
    assert str(refused.value) == f"MCP_CONTEXT_STORE can't be used. {STORE_ADVICE}"
    with pytest.raises(InvalidInput) as refused:
        read({"store": url})
    assert str(refused.value).endswith(STORE_ADVICE)
    assert url not in str(refused.value).removesuffix(STORE_ADVICE)


def test_a_store_given_by_a_flag_makes_up_for_a_bad_variable():
    found = read({"store": "memory:"}, MCP_CONTEXT_STORE="sqlite:/srv/tidy.db")
    assert found.store == "memory:"
    assert found.warnings[0].startswith("MCP_CONTEXT_STORE is ignored")


@pytest.mark.parametrize("command", [["serve"], [], ["sessions", "list"], ["doctor"]])
def test_no_command_turns_to_another_store_than_the_one_that_is_named(command):
    ran = CliRunner().invoke(main, command, env={"MCP_CONTEXT_STORE": "sqlite:/srv/tidy.db"})
    assert ran.exit_code == 1
    assert "MCP_CONTEXT_STORE can't be used." in " ".join(ran.output.split())


@given(
    st.dictionaries(
        st.sampled_from(
            [v.name for v in REFERENCE_VARIABLES]
            + [
                f"MCP_CONTEXT_{field.upper()}"
                for field in (*Settings.model_fields, *Policy.model_fields)
                if field != "store"
            ]
        ),
        st.text(max_size=20) | st.integers().map(str) | st.sampled_from(["on", "[]", "{}"]),
        max_size=8,
    )
)
@hypothesis_settings(max_examples=200, deadline=None)
def test_nothing_but_its_store_in_an_environment_stops_the_server_from_starting(environ):
    assert from_environment(environ, data_dir=HOME).policy()
