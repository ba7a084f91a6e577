"""What comes back into the view after a compaction: once, newest first, within budgets."""

import pytest
from conversations import assistant, call, result, user
from sessions import turn_for

from mcp_context_server.core.edits import Compact
from mcp_context_server.core.messages import message_text
from mcp_context_server.core.stages.compaction import Boundary, compact_edit, spare_tokens
from mcp_context_server.core.stages.contents import Content, is_same
from mcp_context_server.core.stages.counting import tokens_of
from mcp_context_server.core.stages.read_set import read_set
from mcp_context_server.core.stages.remembering import remember
from mcp_context_server.core.stages.restore import restore, wanted_files
from mcp_context_server.core.stages.selecting import select
from mcp_context_server.core.stages.selection import Selection, Wish

MODEL = "claude-sonnet-4-5"


def read(n: int, path: str, content: str = "x = 1\n" * 300, name: str = "Read"):
    return (
        assistant(call(f"r{n}", name, file_path=path), id=f"a{n}"),
        user(result(f"r{n}", content), id=f"b{n}"),
    )


def padding(n: int = 20, chars: int = 12_000):
    rounds = (
        (
            assistant(call(f"p{i}", "Bash", command=f"make {i}"), id=f"pa{i}"),
            user(result(f"p{i}", "out of make\n" * (chars // 12)), id=f"pb{i}"),
        )
        for i in range(n)
    )
    return tuple(message for pair in rounds for message in pair)


def restored(view, contents=None, **options):
    """What comes back after compacting a view, with the turns before and after it."""
    turn = turn_for((user("go", id="u"), *view, *padding()), model=MODEL, **options)
    selection = select(turn, Wish())
    assert isinstance(selection, Selection)
    edit = compact_edit(
        turn, selection, "the story " * 20, Boundary(id="b", trigger="auto", summarizer="agent")
    )
    after = turn.after(edit)
    kept = tuple(m for m in after.view if m.id in selection.kept)
    memory = remember(selection.replaced)
    wanted = wanted_files(memory, kept, turn)
    found = contents or {}
    spare = spare_tokens(turn, selection, edit)
    given = [found.get(u.path, Content(u.path, "line of it\n" * 100, "stored")) for u in wanted]
    return turn, after, restore(turn, edit, memory, given, kept, spare=spare)


def by_kind(back, kind: str) -> list:
    return [m for m in back.messages if (m.model_extra or {})["compaction"] == kind]


@pytest.mark.requirement("REST-1")
def test_the_five_files_read_last_come_back_each_within_its_budget():
    view = [m for n in range(8) for m in read(n, f"/src/f{n}.py")]
    large = {f"/src/f{n}.py": Content(f"/src/f{n}.py", "word " * 60_000, "disk") for n in range(8)}
    turn, _, back = restored(view, large)
    assert back.files == tuple(f"/src/f{n}.py" for n in (7, 6, 5, 4, 3))
    sizes = [tokens_of(turn.session, (m,)) for m in by_kind(back, "file")]
    assert max(sizes) <= 5_000
    assert min(sizes) > 4_900
    assert all("cut here to save room" in message_text(m) for m in by_kind(back, "file"))
    assert back.left_out == ("/src/f2.py", "/src/f1.py", "/src/f0.py")


@pytest.mark.requirement("REST-1")
def test_all_files_together_stay_within_their_budget():
    view = [m for n in range(5) for m in read(n, f"/src/f{n}.py")]
    large = {f"/src/f{n}.py": Content(f"/src/f{n}.py", "word " * 9_000, "disk") for n in range(5)}
    budgets = {"restored_file_tokens": 4_000, "restored_files_tokens": 10_000}
    turn, _, back = restored(view, large, **budgets)
    assert back.files == ("/src/f4.py", "/src/f3.py", "/src/f2.py")
    assert back.left_out == ("/src/f1.py", "/src/f0.py")
    assert tokens_of(turn.session, by_kind(back, "file")) <= 10_000


@pytest.mark.requirement("REST-1")
def test_a_file_that_is_gone_is_told_and_one_that_changed_says_so():
    view = [*read(1, "/gone.py"), *read(2, "/new.py")]
    found = {
        "/gone.py": Content("/gone.py", "", "gone"),
        "/new.py": Content("/new.py", "y = 2\n", "disk", has_changed=True),
    }
    back = restored(view, found)[2]
    assert back.files == ("/new.py",)
    assert back.left_out == ("/gone.py (gone)",)
    assert "it has changed since it was read" in message_text(by_kind(back, "file")[0])


@pytest.mark.requirement("REST-2")
def test_files_that_stand_in_kept_messages_and_plan_and_memory_files_do_not_come_back():
    view = [*read(1, "/a.py"), *read(2, "/p/plan.md"), *read(3, "/repo/CLAUDE.md")]
    memory = remember(tuple(view))
    turn = turn_for(tuple(view))
    assert [u.path for u in wanted_files(memory, (), turn)] == ["/a.py"]
    assert wanted_files(memory, read(1, "/a.py"), turn) == ()


@pytest.mark.requirement("REST-2")
def test_a_skill_that_stands_in_kept_messages_does_not_come_back():
    def used(n: int, skill: str):
        asked = assistant(call(f"s{n}", "Skill", skill=skill), id=f"sa{n}")
        return asked, user(result(f"s{n}", "step by step " * 30), id=f"sb{n}")

    turn = turn_for((user("go", id="u"), *used(0, "write"), *used(1, "test"), *padding()))
    selection = select(turn, Wish())
    assert isinstance(selection, Selection)
    boundary = Boundary(id="b", trigger="auto", summarizer="agent")
    edit = compact_edit(turn, selection, "the story " * 20, boundary)
    memory, spare = remember(selection.replaced), spare_tokens(turn, selection, edit)
    assert restore(turn, edit, memory, (), (), spare=spare).skills == ("test", "write")
    assert restore(turn, edit, memory, (), used(2, "test"), spare=spare).skills == ("write",)


@pytest.mark.requirement("REST-3")
def test_skills_come_back_newest_first_and_what_does_not_fit_is_named():
    view = []
    for n in range(7):
        view.append(assistant(call(f"s{n}", "Skill", skill=f"skill-{n}"), id=f"sa{n}"))
        view.append(user(result(f"s{n}", "step by step " * 15_000), id=f"sb{n}"))
    turn, _, back = restored(view)
    messages = by_kind(back, "skill")
    assert back.skills == tuple(f"skill-{n}" for n in (6, 5, 4, 3, 2))
    assert all(tokens_of(turn.session, (m,)) <= 5_000 for m in messages)
    assert tokens_of(turn.session, messages) <= 25_000
    (named,) = by_kind(back, "skills_named")
    assert "skill-1, skill-0" in message_text(named)
    assert "cut here to save room" in message_text(messages[0])


TODOS = [
    {"content": "read the parser", "status": "completed"},
    {"content": "mend the lexer", "status": "completed"},
    {"content": "write the tests", "status": "in_progress"},
    {"content": "ask about the API", "status": "pending"},
    {"content": "drop the cache", "status": "cancelled"},
]


def structured():
    return (
        assistant(call("t", "TodoWrite", todos=TODOS), id="ta"),
        user(result("t"), id="tb"),
        assistant(
            call("w", "Write", file_path="/p/plan.md", content="1. lexer\n2. tests"), id="wa"
        ),
        user(result("w"), id="wb"),
        assistant(call("x", "Bash", command="serve", run_in_background=True), id="xa"),
        user(result("x", "Command running in background with ID: t1"), id="xb"),
    )


@pytest.mark.requirement("REST-4")
def test_todos_plan_and_running_work_come_back_whole_exactly_once():
    back = restored(structured())[2]
    assert back.notes == ("todos", "running", "plan")
    (todos,) = by_kind(back, "todos")
    assert message_text(todos).splitlines()[1:] == [
        "- [done] read the parser",
        "- [done] mend the lexer",
        "- [in progress] write the tests",
        "- [open] ask about the API",
        "- [cancelled] drop the cache",
    ]
    assert "`t1` serve" in message_text(by_kind(back, "running")[0])
    assert "/p/plan.md" in message_text(by_kind(back, "plan")[0])
    assert "1. lexer\n2. tests" in message_text(by_kind(back, "plan")[0])


@pytest.mark.requirement("REST-4")
def test_they_come_back_after_every_further_compaction_as_well():
    back = restored(structured())[2]
    again = remember((user("go", id="u"), *back.messages)).notes
    assert {kind: again[kind] for kind in back.notes} == {
        kind: message_text(by_kind(back, kind)[0]) for kind in back.notes
    }


@pytest.mark.requirement("REST-4")
def test_tools_found_are_told_where_the_kept_messages_do_not_show_them():
    found = [{"type": "tool_reference", "tool_name": "mail_send"}]
    kept = (
        assistant(call("s", "tool_search", query="mail"), id="sa"),
        user(result("s", found), id="sb"),
    )
    turn = turn_for((user("go", id="u"), *kept))
    names = ("mail_send", "mail_read")
    edit = Compact(id="b", first="u", last="u", messages=(), discovered_tools=names)
    back = restore(turn, edit, remember(()), (), kept, spare=1_000)
    (tools,) = by_kind(back, "tools")
    assert message_text(tools) == "Tools found earlier, still available: mail_read."


@pytest.mark.requirement("REST-5")
@pytest.mark.parametrize("window", [8_000, 20_000, 60_000, 200_000])
def test_restoration_never_brings_the_view_up_to_the_warning(window):
    view = [m for n in range(8) for m in read(n, f"/src/f{n}.py")]
    large = {f"/src/f{n}.py": Content(f"/src/f{n}.py", "word " * 60_000, "disk") for n in range(8)}
    _, after, back = restored([*structured(), *view], large, context_window_tokens=window)
    size = after.used + tokens_of(after.session, back.messages)
    assert size < max(after.window.warning, after.used + 1)


@pytest.mark.requirement("REST-5")
def test_no_policy_restores_up_to_the_warning():
    greedy = {"restore_to_fraction": 1.0, "restored_fraction": 0.99, "restored_file_tokens": 50_000}
    view = [m for n in range(5) for m in read(n, f"/src/f{n}.py")]
    large = {f"/src/f{n}.py": Content(f"/src/f{n}.py", "word " * 9_000, "disk") for n in range(5)}
    options = {**greedy, "context_window_tokens": 60_000, "warning_buffer_tokens": 120_000}
    _, after, back = restored(view, large, **options)
    size = after.used + tokens_of(after.session, back.messages)
    assert back.files
    assert size < after.window.warning


def test_files_and_skills_take_no_more_than_half_of_what_was_freed():
    view = [m for n in range(8) for m in read(n, f"/src/f{n}.py", "x = 1\n" * 3_000)]
    turn, after, back = restored(view)
    freed = turn.used - after.used
    assert tokens_of(after.session, back.messages) <= freed * 0.5 + 2_000


@pytest.mark.requirement("REST-7")
def test_the_read_set_is_carried_from_one_compaction_to_the_next():
    back = restored([*read(1, "/a.py"), *read(2, "/b.py")])[2]
    memory = remember((user("go", id="u"), *back.messages, *read(3, "/c.py")))
    assert list(read_set(memory)) == ["/c.py", "/b.py", "/a.py"]
    assert read_set(memory)["/a.py"]["reads"] == 1
    assert read_set(memory)["/a.py"]["reference"] == "r1"


@pytest.mark.requirement("BRK-4")
def test_files_read_again_after_they_were_restored_are_named_and_come_first():
    back = restored([*read(1, "/a.py"), *read(2, "/b.py")])[2]
    view = (*back.messages, *read(3, "/a.py"), *read(4, "/z.py"))
    memory = remember(view)
    assert memory.again == ("/a.py",)
    assert [u.path for u in wanted_files(memory, (), turn_for(view))] == ["/a.py", "/z.py"]


@pytest.mark.requirement("BRK-4")
def test_files_read_between_every_compaction_are_counted_and_named_in_the_view():
    """Five files read anew in each of three cycles, of which none fits to be restored."""
    paths = [f"/src/{name}.py" for name in "abcde"]
    small = {"restored_files": 0, "restored_fraction": 0.9}
    view, counts = (), []
    for cycle in range(3):
        reads = [m for n, path in enumerate(paths) for m in read(10 * cycle + n, path)]
        back = restored((*view, *reads), **small)[2]
        view = back.messages
        counts.append(read_set(remember(view))["/src/a.py"]["reads"])
    assert counts == [1, 2, 3]
    assert back.again == tuple(reversed(paths))
    (named,) = by_kind(back, "read_again")
    assert all(f"`{path}`" in message_text(named) for path in paths)


@pytest.mark.requirement("REST-6")
@pytest.mark.parametrize("tool", ["Read", "read_file", "view_file", "mcp__fs__read_text_file"])
def test_the_tools_that_read_are_known_by_host(tool):
    memory = remember((user("go", id="u"), *read(1, "/a.py", name=tool)))
    assert list(memory.files) == ["/a.py"]


def test_a_numbered_read_is_the_same_as_the_file_it_shows():
    disk = "def a():\n    return 1\n\ndef b():\n    return 2\n"
    assert is_same("     1→def a():\n     2→    return 1\n", disk)
    assert is_same("4\tdef b():\n5\t    return 2", disk)
    assert not is_same("     1→def c():\n", disk)


@pytest.mark.requirement("REST-7")
def test_a_file_that_was_only_touched_has_not_changed():
    """What a file was read as is compared, never when it was written."""
    numbered = "".join(f"{n:6}\t{line}\n" for n, line in enumerate(("a = 1", "b = 2"), start=1))
    assert is_same(numbered, "a = 1\nb = 2\n")
    assert not is_same(numbered, "a = 1\nb = 3\n")
