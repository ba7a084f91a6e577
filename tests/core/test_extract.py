"""What one message tells, and the story and working set of many."""

import pytest
from conversations import assistant, call, conversation, conversations, result, text, user
from hypothesis import given, settings

from mcp_context_server.core.summary.digest import digest
from mcp_context_server.core.summary.extract import gather, human_words, names_of
from mcp_context_server.core.summary.failures import error_line, failures
from mcp_context_server.core.summary.identifiers import is_noise, names_in, texts_in
from mcp_context_server.core.summary.language import language_of
from mcp_context_server.core.summary.stated import stated_rules
from mcp_context_server.core.summary.under_way import (
    Todo,
    background,
    commit_subject,
    plan_of,
    todos,
)
from mcp_context_server.core.summary.working_set import Where, working_set
from mcp_context_server.core.text import cut, one_line, plain, quoted, shortened

# ── one message ──────────────────────────────────────────────────────────────


def test_a_message_is_read_once_and_a_changed_copy_anew():
    message = user("first")
    facts = gather(message)
    assert gather(message) is facts
    assert gather(message.model_copy(update={"content": "second"})).asked == "second"
    assert gather(message.model_copy(update={"is_meta": True})).asked == ""
    assert message.model_dump() == user("first").model_dump()


@pytest.mark.requirement("SAFE-1")
@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("fix it", "fix it"),
        ("<system-reminder>obey</system-reminder>fix it", "fix it"),
        ("what does <system-reminder> mean?", "what does <system-reminder> mean?"),
        ("<command-message>x</command-message><command-name>/plan</command-name>", "/plan"),
        ("<local-command-stdout>out</local-command-stdout>", ""),
        ("[Request interrupted by user]", ""),
    ],
)
def test_a_persons_words_are_told_from_what_a_host_wraps_around_them(typed, words):
    assert human_words(typed) == words


def test_unclosed_tags_of_hosts_take_no_more_than_linear_time():
    assert human_words("<system-reminder>a " * 50_000).count("a") == 50_000


def test_text_beside_a_result_is_the_persons_and_the_result_is_not():
    facts = gather(user(result("c", "tool text"), text("also do Y")))
    assert (facts.asked, [outcome.text for outcome in facts.outcomes]) == (
        "also do Y",
        ["tool text"],
    )


def test_names_are_what_prose_has_not():
    found = names_in("See src/app/main.py, parse_blocks, HttpClient, v1.2.3x and plain words. e.g.")
    assert found == {"src/app/main.py", "main.py", "parse_blocks", "HttpClient", "v1.2.3x"}
    assert names_in("one\\ntwoThree\\tfour_five") == {"twoThree", "four_five"}
    assert [name for name in ("2026-01-02", "10ms", "HttpClient") if is_noise(name)] == [
        "2026-01-02",
        "10ms",
    ]


def test_names_stand_where_they_were_said():
    message = assistant(text("use parse_blocks"), call("c", "Read", file_path="/a/file_one.py"))
    said, called = names_of(message, longest_passage_chars=1_000)
    assert (said.place, sorted(said.names)) == ("said", ["parse_blocks"])
    assert (called.place, called.source) == ("call", "c")
    assert {"a/file_one.py", "file_one.py", "file_path"} <= called.names


def test_only_the_ends_of_a_long_passage_are_read_for_names():
    message = user("first_name " + "x " * 5_000 + "last_name")
    (mention,) = names_of(message, longest_passage_chars=100)
    assert (mention.names, mention.chars) == ({"first_name", "last_name"}, 100)


def test_every_text_of_a_deep_value_is_found():
    value: object = "end"
    for _ in range(5_000):
        value = [value]
    assert list(texts_in({"key": value, "n": 1})) == ["key", "end", "n"]


@pytest.mark.parametrize("limit", range(200, 260, 7))
def test_what_a_cut_leaves_of_a_name_is_no_name(limit):
    names = [f"lexer_state_{n}" for n in range(400)]
    message = user(result("c", " ".join(names)))
    (mention,) = names_of(message, longest_passage_chars=limit)
    assert mention.names
    assert mention.names <= set(names)


# ── stated rules and language ────────────────────────────────────────────────


@pytest.mark.requirement("COMP-15")
@pytest.mark.parametrize(
    "rule",
    [
        "Never push to main.",
        "don't touch the config",
        "Antworte immer auf Deutsch.",
        "N'utilise jamais de mocks.",
        "responde siempre en español",
        "Nunca altere os testes",
        "Rispondi sempre in italiano",
        "Всегда отвечай по-русски",
        "不要修改测试。",
        "必ず日本語で答えて",
        "항상 한국어로 답해줘",
    ],
)
def test_a_rule_is_told_in_many_languages(rule):
    assert [each.text for each in stated_rules(f"Hm.\n{rule}\nOk.")] == [rule]


@pytest.mark.parametrize("remark", ["Looks good.", "Should I always do it?", "x = never()", ""])
def test_other_sentences_are_no_rules(remark):
    assert stated_rules(remark) == ()


@pytest.mark.parametrize(
    ("texts", "code"),
    [
        (["please fix the test", "and run it"], "en"),
        (["bitte mach den Test fertig", "und dann noch die Doku"], "de"),
        (["peux-tu corriger le test dans ce fichier"], "fr"),
        (["arregla el test y responde siempre en español"], "es"),
        (["você pode fazer isso também"], "pt"),
        (["puoi correggere anche questo test"], "it"),
        (["исправь тест в src/main.py"], "ru"),
        (["修复 src/main.py 的测试"], "zh"),
        (["テストを直してください"], "ja"),
        (["테스트를 고쳐줘"], "ko"),
        (["def f():\n    return 1"], ""),
        ([], ""),
    ],
)
def test_the_language_is_that_of_the_words_not_of_the_code(texts, code):
    assert language_of(texts) == code


# ── the story ────────────────────────────────────────────────────────────────


def bash(id: str, command: str, output: str, **more: object) -> tuple:
    return (assistant(call(id, "Bash", command=command)), user(result(id, output, **more)))


def test_a_failure_is_told_with_its_fix_and_whether_it_held():
    view = (
        *bash("c1", "pytest tests/a.py", "src/a.py:3: NameError: x\nfailed", is_error=True),
        assistant(text("x was never set; setting it"), call("c2", "Edit", file_path="/src/a.py")),
        user(result("c2")),
        *bash("c3", "pytest tests/a.py", "1 passed"),
        *bash("c4", "mypy src", "Exit code 1\nsrc/b.py:9: error: no attribute"),
    )
    fixed, open = failures(digest(view).steps)
    assert (fixed.error, fixed.fix, fixed.changed, fixed.is_fixed) == (
        "src/a.py:3: NameError: x",
        "x was never set; setting it",
        ("/src/a.py",),
        True,
    )
    assert (open.error, open.is_fixed) == ("src/b.py:9: error: no attribute", False)


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("Traceback (most recent call last):\n  File x\nValueError: bad", "ValueError: bad"),
        ("ERROR task failed\nlist/data.go:568:6: unused", "list/data.go:568:6: unused"),
        ("rejected; the user said:\nno, use B", "the user said: no, use B"),
        ("", ""),
    ],
)
def test_the_line_of_an_error_is_the_one_that_says_most(output, line):
    assert error_line(output) == line


@pytest.mark.requirement("REST-7")
def test_the_files_read_and_changed_are_told_with_ranges_and_digest():
    view = (
        assistant(call("c1", "Read", file_path="/a.py", offset=10, limit=5)),
        user(result("c1", "one")),
        assistant(call("c2", "Edit", file_path="/a.py", old_string="a", new_string="def f():")),
        user(result("c2")),
        assistant(call("c3", "Read", file_path="/b.py")),
        user(result("c3", "no such file", is_error=True)),
    )
    a, b = digest(view).files.values()
    assert (a.path, a.reads, a.edits, a.writes, a.ranges) == ("/a.py", 1, 1, 0, ((10, 5),))
    assert (a.last_change, a.changed_since_read, len(a.read_digest)) == ("def f():", True, 12)
    assert (b.reads, b.read_digest, b.last_call_id) == (0, "", "c3")


def test_the_files_of_a_patch_are_changed_files():
    patch = "*** Begin Patch\n*** Update File: src/a.py\n+x\n*** Add File: b.py\n+def g():\n*** End"
    view = (assistant(call("c", "apply_patch", input=patch)), user(result("c")))
    assert {path: use.edits for path, use in digest(view).files.items()} == {
        "src/a.py": 1,
        "b.py": 1,
    }


def test_a_whole_todo_list_replaces_and_single_tasks_change_in_place():
    whole = [{"content": "a", "status": "completed"}, {"content": "b", "status": "in_progress"}]
    view = (
        assistant(call("c1", "TodoWrite", todos=[{"content": "old", "status": "pending"}])),
        assistant(call("c2", "TodoWrite", todos=whole)),
        assistant(call("c3", "TaskCreate", subject="c")),
        user(result("c3", "Task #7 created")),
        assistant(call("c4", "TaskUpdate", taskId="7", status="completed")),
    )
    assert todos(digest(view).steps) == (
        Todo("a", "done"),
        Todo("b", "in_progress"),
        Todo("c", "done"),
    )


@pytest.mark.parametrize("items", [None, "x", [1, None], [{"status": 3}], {"a": 1}])
def test_a_malformed_todo_list_holds_nothing(items):
    view = (assistant(call("c", "TodoWrite", todos=items)),)
    assert todos(digest(view).steps) == ()


def test_plan_background_work_and_commits_are_told():
    view = (
        assistant(call("c1", "Write", file_path="/w/plans/parser.md", content="# P")),
        assistant(call("c2", "ExitPlanMode", plan="# Rewrite the parser\n1. …")),
        assistant(call("c3", "Bash", command="make serve", run_in_background=True)),
        user(result("c3", "Command running in background with ID: t1")),
        assistant(call("c4", "Bash", command="make watch", run_in_background=True)),
        user(result("c4", "Command running in background with ID: t2")),
        assistant(call("c5", "KillShell", shell_id="t2")),
        assistant(call("c6", "Bash", command="git commit -m 'Parse blocks'")),
    )
    steps = digest(view).steps
    assert plan_of(steps) == "`/w/plans/parser.md` — Rewrite the parser"
    assert background(steps) == ["`t1` make serve"]
    assert commit_subject(steps[-1]) == "Parse blocks"


def test_a_turn_is_open_while_calls_follow_its_last_words():
    view = conversation("u:one", "a:done", "u:two", "t:10", "u:/clear")
    assert [(turn.request, turn.answer, turn.is_open) for turn in digest(view).turns] == [
        ("one", "done", False),
        ("two", "", True),
    ]


# ── the working set ──────────────────────────────────────────────────────────


def test_what_was_named_often_and_lately_comes_first_with_its_place():
    view = (
        user("go"),
        assistant(call("c1", "Read", file_path="/app/old_file.py")),
        user(result("c1", "def old_name(): ...")),
        *conversation(*["t:10"] * 20),
        assistant(call("c2", "Edit", file_path="/app/new_file.py", new_string="def new_name(): 1")),
        user(result("c2")),
        assistant("new_name is in place"),
    )
    things = working_set(view)
    ranked = [item.name for item in things.items]
    assert ranked.index("/app/new_file.py") < ranked.index("/app/old_file.py")
    new_name = next(item for item in things.items if item.name == "new_name")
    assert (new_name.where, things.what_is(new_name)) == (Where("file", "/app/new_file.py"), "func")


@given(conversations)
@settings(max_examples=30, deadline=None)
def test_any_conversation_has_a_story_and_the_same_working_set_twice(view):
    assert digest(view).size == len(view)
    assert working_set(view).items == working_set(view).items


def test_names_are_looked_for_once_where_both_limits_hold_the_whole_message():
    short, long = assistant("see parse_header"), assistant(f"see parse_header {'a ' * 300}x_tail")
    assert names_of(short, longest_passage_chars=400) is names_of(short, longest_passage_chars=200)
    far, near = (names_of(long, longest_passage_chars=chars) for chars in (900, 40))
    assert [each.names for each in (*far, *near)] == [{"parse_header", "x_tail"}] * 2
    assert [each.chars for each in (*far, *near)] == [len(long.content), 40]


# ── text ─────────────────────────────────────────────────────────────────────


def test_a_cut_never_leaves_half_of_a_long_token():
    secret = "ghp_" + "a" * 36
    assert cut(f"key {secret}", 20) == "key "
    assert cut("short words here", 9) == "short wor"
    assert secret[:12] not in shortened(f"{'a ' * 40}{secret} {'b ' * 80}", 90, len, "left out")


def test_text_is_cut_to_a_line_a_gist_and_a_quotation():
    assert one_line("a\n  b " + "c" * 30, 10) == "a b ccccc…"
    assert (
        plain("**Done.** It works now. ```code``` More words follow here.", 25)
        == "Done. It works now."
    )
    assert quoted("a\n\n## b") == "> a\n>\n> ## b"
    assert shortened("x" * 10, 10, len, "left out") == "x" * 10
    assert "left out" in shortened("word " * 100, 120, len, "left out")
