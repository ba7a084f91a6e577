"""Synthetic conversations for the pages to show."""

from transcripts.claude import answer, boundary, lines, record, reply, summary, user

HOSTILE = '<img src=x onerror="window.hacked=1"></script><script>window.hacked=2</script>'
"""What a page must show as text, and never obey."""

KEY = "sk-ant-" + "api03-" + "a1B2" * 10
"""A string with the shape of a key, and no key."""


def usage(read: int, written: int, output: int = 200) -> dict:
    return {
        "input_tokens": 10,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
        "output_tokens": output,
    }


def reading(n: int, parent: str, path: str, *, tokens: int, tool: str = "Read") -> list[dict]:
    """A call that reads a file, and its result of about so many tokens; ids are of `n`."""
    use = {"type": "tool_use", "id": f"c{n}", "name": tool, "input": {"file_path": path}}
    return [
        reply(f"a{n}", parent, use, usage=usage(20_000 + 4_000 * n, 4_000), stop="tool_use"),
        answer(f"r{n}", f"a{n}", f"c{n}", "value = compute(row)\n" * (tokens // 6)),
    ]


def session(*more: dict) -> bytes:
    """Two turns of a coding agent with a compaction between them, as Claude Code records it."""
    first = [record for n in range(6) for record in reading(n, f"r{n - 1}", PATHS[n], tokens=3000)]
    first[0]["parentUuid"] = "u1"
    second = [
        boundary("b1", "r5", preTokens=167_000),
        summary("s1", "b1", "Worked on tide_table.py; the rounding in almanac_rows is wrong."),
        user("u2", "s1", "Now mend it."),
        *reading(7, "u2", "/proj/app/tide_table.py", tokens=2500),
        *reading(8, "r7", "/proj/app/harbour_list.py", tokens=1200),
        reply("a9", "r8", "Mended tide_table.py and clock_change.py.", usage=usage(31_000, 900)),
    ]
    return lines(user("u1", None, "Why is the low water missing?"), *first, *second, *more)


PATHS = [
    "/proj/app/tide_table.py",
    "/proj/app/almanac_rows.py",
    "/proj/app/clock_change.py",
    "/proj/app/harbour_list.py",
    "/proj/app/tests/test_tides.py",
    "/proj/app/README.md",
]


def hostile() -> bytes:
    """The same with a file and a tool whose names are markup, and a key in a path."""
    at = "a9"
    return session(
        user("u3", at, "And these?"),
        *reading(10, "u3", f"/proj/{HOSTILE}.py", tokens=4000),
        *reading(11, "r10", f"/proj/{KEY}/notes.md", tokens=2000),
        *reading(12, "r11", "/proj/app/x.py", tokens=900, tool=f"mcp__x__{HOSTILE}"),
        record("system", "z1", "r12", subtype="informational", content=HOSTILE),
    )
