"""Records the demo conversation that ships with the package.

    python benchmarks/record_demo.py          write mcp_context_server/demo/recording.jsonl

`demo/project.txt` holds the files of an invented project, `demo/screenplay.txt` what a
person and a coding agent say and do there. Playing the screenplay keeps the files: what
a read, a search or an edit shows is worked out from them, what a shell printed stands in
the screenplay. Nothing here is random or reads a clock, so the recording is the same
bytes every time. The people, the project and the conversation are made up.
"""

import base64
import fnmatch
import json
import re
import struct
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from math import cos
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent / "demo"
RECORDING = HERE.parents[1] / "mcp_context_server" / "demo" / "recording.jsonl"

ROOT = "/home/dev/tidemark"
MODEL = "claude-opus-4-5-20251101"
BEGAN = datetime(2026, 3, 17, 8, 41, 12, 307000, tzinfo=UTC)
OVERHEAD_TOKENS = 6_000
"""System prompt and tool definitions, which every request carries and no message shows."""
CACHE_LIFETIME = timedelta(minutes=5)
UNCACHED_TOKENS = 4
"""Prompt tokens after the last cache breakpoint."""
TOKENS_PER_CHARACTER = {"user": 0.28, "text": 0.28, "call": 0.31, "result": 0.35, "thinking": 0.22}
"""What text cost on real usage figures of models of this family, by where it stands."""
TOKENS_PER_CALL = 75
PIXELS_PER_TOKEN = 750
UNEVENNESS = 0.06
"""How much the true price of a piece of text strays from the average, as a fraction."""

Block = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Cue:
    """One step of a screenplay: `%% verb arguments`, and the lines below it."""

    verb: str
    arguments: tuple[str, ...]
    body: str


def cues(text: str) -> Iterator[Cue]:
    """The steps of a screenplay, or the files of a project, in order."""
    for part in re.split(r"^%% ", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        verb, *arguments = head.split()
        yield Cue(verb, tuple(arguments), body.rstrip("\n"))


def project() -> dict[str, str]:
    """The invented project before anyone touched it: text by path."""
    text = (HERE / "project.txt").read_text("utf-8")
    return {cue.arguments[0]: cue.body + "\n" for cue in cues(text)}


def record() -> str:
    """The whole recording as JSON lines."""
    recorder = Recorder(project())
    for cue in cues((HERE / "screenplay.txt").read_text("utf-8")):
        recorder.play(cue)
    recorder.finish()
    return "".join(json.dumps(m, ensure_ascii=False) + "\n" for m in recorder.messages)


@dataclass
class Recorder:
    """Plays cues: keeps the files, the clock and the bill, and writes the messages down."""

    files: dict[str, str]
    now: datetime = BEGAN
    messages: list[dict[str, Any]] = field(default_factory=list)
    reply: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)
    prompt_tokens: int = OVERHEAD_TOKENS
    cached_tokens: int = 0
    last_request: datetime = BEGAN

    def play(self, cue: Cue) -> None:
        if cue.verb == "user":
            self.prompt(cue)
        elif cue.verb == "assistant":
            self.finish()
        elif cue.verb in SPOKEN:
            self.reply.append(SPOKEN[cue.verb](cue))
        else:
            self.call(cue)

    def prompt(self, cue: Cue) -> None:
        """A person's message, `minutes` after what came before it.

        Said while a tool runs, it stands in the message with the tool's result.
        """
        self.finish()
        self.now += timedelta(minutes=float(cue.arguments[0]), seconds=share(cue.body) * 20)
        if self.messages and self.messages[-1]["role"] == "user":
            self.join(say(cue))
        else:
            self.write("user", cue.body)

    def call(self, cue: Cue) -> None:
        """A tool call, and what the tool answers."""
        name, arguments, content = TOOLS[cue.verb.rstrip("!")](self.files, cue)
        id = "toolu_01" + token(f"call {len(self.messages)} {len(self.results)}", 22)
        self.reply.append({"type": "tool_use", "id": id, "name": name, "input": arguments})
        failed = {"is_error": True} if cue.verb.endswith("!") else {}
        result = {"type": "tool_result", "tool_use_id": id, "content": content}
        self.results.append(result | failed)

    def finish(self) -> None:
        """Write down the response under way, if any, and the results of its calls."""
        if not self.reply:
            return
        reply, results, self.reply, self.results = self.reply, self.results, [], []
        usage = self.usage(reply)
        self.now += timedelta(seconds=2.5 + usage["output_tokens"] / 55)
        self.write("assistant", reply, model=MODEL, usage=usage)
        if results:
            self.now += timedelta(seconds=0.2 + share(json.dumps(results)) + seconds_told(results))
            self.write("user", results)

    def join(self, block: Block) -> None:
        """Put a block at the end of the newest message."""
        newest = self.messages[-1]
        newest["timestamp"] = self.stamp()
        newest["content"] = [*newest["content"], block]
        self.prompt_tokens += cost(block, "user")

    def stamp(self) -> str:
        return self.now.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    def write(self, role: str, content: str | list[Block], **more: object) -> None:
        id = f"m{len(self.messages) + 1:03}"
        head = {"id": id, "timestamp": self.stamp(), "role": role}
        self.messages.append(head | {"content": content} | more)
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        self.prompt_tokens += sum(cost(block, role) for block in blocks)

    def usage(self, reply: list[Block]) -> dict[str, Any]:
        """What the API would report for a response to everything written so far."""
        if self.now - self.last_request > CACHE_LIFETIME:
            self.cached_tokens = 0
        written = self.prompt_tokens - UNCACHED_TOKENS - self.cached_tokens
        bill = {
            "input_tokens": UNCACHED_TOKENS,
            "cache_creation_input_tokens": written,
            "cache_read_input_tokens": self.cached_tokens,
            "cache_creation": {
                "ephemeral_5m_input_tokens": written,
                "ephemeral_1h_input_tokens": 0,
            },
            "output_tokens": sum(cost(block, "assistant") for block in reply),
            "service_tier": "standard",
        }
        self.cached_tokens, self.last_request = self.cached_tokens + written, self.now
        return bill


# ── what is said ─────────────────────────────────────────────────────────────


def say(cue: Cue) -> Block:
    return {"type": "text", "text": cue.body}


def think(cue: Cue) -> Block:
    """A thinking block whose signature has a real one's shape and signs nothing."""
    size = 240 + len(cue.body) // 2
    signed = b"".join(sha256(f"{n} {cue.body}".encode()).digest() for n in range(size // 32 + 1))
    signature = "Er" + base64.b64encode(signed).decode()[:size].rstrip("=") + "GAE="
    return {"type": "thinking", "thinking": cue.body, "signature": signature}


SPOKEN: dict[str, Callable[[Cue], Block]] = {"say": say, "think": think}


# ── what is done ─────────────────────────────────────────────────────────────

Files = dict[str, str]
Call = tuple[str, dict[str, Any], object]
"""A tool's name, its input, and the content of its result."""


def read(files: Files, cue: Cue) -> Call:
    """`read PATH [FIRST COUNT]`: numbered lines of a file as it is now."""
    path, *bounds = cue.arguments
    lines = files[path].splitlines()
    if not bounds:
        return "Read", {"file_path": absolute(path)}, numbered(lines, 0, len(lines))
    first, count = map(int, bounds)
    arguments = {"file_path": absolute(path), "offset": first, "limit": count}
    return "Read", arguments, numbered(lines, first - 1, first - 1 + count)


def glob(files: Files, cue: Cue) -> Call:
    """`glob PATTERN`: the paths that match."""
    (pattern,) = cue.arguments
    return "Glob", {"pattern": pattern}, "\n".join(sorted(fnmatch.filter(files, pattern)))


def grep(files: Files, cue: Cue) -> Call:
    """`grep PATHS` with the expression below: every line that matches."""
    (paths,) = cue.arguments
    hits = [
        f"{path}:{number}:{line}"
        for path in sorted(fnmatch.filter(files, paths))
        for number, line in enumerate(files[path].splitlines(), 1)
        if re.search(cue.body, line)
    ]
    arguments = {"pattern": cue.body, "glob": paths, "output_mode": "content"}
    return "Grep", arguments, "\n".join(hits) or "No matches"


def edit(files: Files, cue: Cue) -> Call:
    """`edit PATH` with the old text, a line `====`, and the new text below."""
    (path,) = cue.arguments
    old, new = re.split(r"^====\n?", cue.body, maxsplit=1, flags=re.MULTILINE)
    old = old.removesuffix("\n")
    before, found, after = files[path].partition(old)
    if not found or old in after:
        message = f"{path}: the old text is there {files[path].count(old)} times"
        raise ValueError(message)
    files[path] = before + new + after
    top = before.count("\n")
    shown = numbered(files[path].splitlines(), max(0, top - 3), top + new.count("\n") + 4)
    arguments = {"file_path": absolute(path), "old_string": old, "new_string": new}
    return "Edit", arguments, f"{path} is changed. It now reads:\n{shown}"


def write(files: Files, cue: Cue) -> Call:
    """`write PATH` with the new text of the file below."""
    (path,) = cue.arguments
    files[path] = cue.body + "\n"
    count = files[path].count("\n")
    arguments = {"file_path": absolute(path), "content": files[path]}
    return "Write", arguments, f"Wrote {count} lines to {path}."


def shell(files: Files, cue: Cue) -> Call:
    """`bash` with `$ command`, a line `====`, and what it printed below."""
    command, _, printed = cue.body.removeprefix("$ ").partition("\n====\n")
    if printed == "{nightly log}":
        printed = nightly_log()
    return "Bash", {"command": command}, printed or "(no output)"


def todo(files: Files, cue: Cue) -> Call:
    """`todo` with a list below: `[x]` done, `[>]` under way, `[ ]` to do."""
    states = {"x": "completed", ">": "in_progress", " ": "pending"}
    items = [
        {"content": line[4:], "status": states[line[1]]} for line in cue.body.splitlines() if line
    ]
    return "TodoWrite", {"todos": items}, "The list is saved."


def picture(files: Files, cue: Cue) -> Call:
    """`image PATH`: a look at the chart that `tools/plot.py` drew."""
    data = base64.b64encode(chart()).decode()
    source = {"type": "base64", "media_type": "image/png", "data": data}
    return "Read", {"file_path": cue.arguments[0]}, [{"type": "image", "source": source}]


TOOLS: dict[str, Callable[[Files, Cue], Call]] = {
    "read": read,
    "glob": glob,
    "grep": grep,
    "edit": edit,
    "write": write,
    "bash": shell,
    "todo": todo,
    "image": picture,
}


def absolute(path: str) -> str:
    return path if path.startswith("/") else f"{ROOT}/{path}"


def seconds_told(results: list[Block]) -> float:
    """How long the test runs among the results say that they took."""
    told = (re.search(r"(?:passed|failed) in ([0-9.]+)s", str(each["content"])) for each in results)
    return sum(float(found[1]) for found in told if found)


def numbered(lines: list[str], start: int, stop: int) -> str:
    stop = min(stop, len(lines))
    return "\n".join(f"{n + 1:>5}\t{lines[n]}" for n in range(start, stop))


# ── what it costs ────────────────────────────────────────────────────────────


def cost(block: Block, role: str) -> int:
    """Tokens of a block: a price per character, a little uneven as in life."""
    match block:
        case {"type": "text", "text": str(text)}:
            return price(text, "text" if role == "assistant" else "user")
        case {"type": "thinking", "thinking": str(text)}:
            return price(text, "thinking")
        case {"type": "tool_use", "name": str(name), "input": arguments}:
            return TOKENS_PER_CALL + price(name + json.dumps(arguments), "call")
        case {"type": "tool_result", "content": str(text)}:
            return price(text, "result")
        case _:
            return CHART_WIDTH * CHART_HEIGHT // PIXELS_PER_TOKEN


def price(text: str, kind: str) -> int:
    uneven = 1 + UNEVENNESS * (2 * share(text) - 1)
    return 1 + round(len(text) * TOKENS_PER_CHARACTER[kind] * uneven)


# ── the log of the nightly job ───────────────────────────────────────────────

LOG_STATIONS = (
    *("brest", "le-conquet", "camaret", "roscoff", "saint-malo", "cherbourg", "le-havre"),
    *("dunkerque", "les-sables", "la-rochelle", "arcachon", "st-peter-port"),
)
LOG_DAYS = 14
LOG_BEGAN = datetime(2026, 3, 17, 11, 10, 4, 118000)


def nightly_log() -> str:
    """A run in which each table is made twice and the cache never helps."""
    clock, lines = LOG_BEGAN, []

    def log(level: str, text: str) -> None:
        stamp = clock.time().isoformat("milliseconds")
        lines.append(f"{stamp} {level} {text}")

    count = len(LOG_STATIONS)
    log("INFO", f"nightly: {count} stations, {LOG_DAYS} days, text and json")
    for turn, layout in enumerate(("text", "json"), 1):
        log("INFO", f"pass {layout} begins")
        for table in log_tables():
            milliseconds = log_milliseconds(f"{layout} {table}")
            clock += timedelta(milliseconds=milliseconds)
            level, verb = ("WARNING", "slow table") if milliseconds > 250 else ("INFO", "wrote")
            log(level, f"{verb} {table} {layout} {milliseconds} ms")
        log("INFO", f"after {layout}: hits=0 misses={turn * count * LOG_DAYS}")
    log("INFO", f"nightly: done in {(clock - LOG_BEGAN).total_seconds():.1f} s")
    return "\n".join(lines)


def log_tables() -> Iterator[str]:
    for n in range(LOG_DAYS):
        day = (LOG_BEGAN + timedelta(days=n)).date()
        yield from (f"{id} {day}" for id in LOG_STATIONS)


def log_milliseconds(table: str) -> int:
    """Slow in three cases of ten; elsewhere the machine was just busy."""
    return round(96 + 120 * share(table) + (170 if share(f"slow {table}") < 0.3 else 0))


# ── the chart ────────────────────────────────────────────────────────────────

CHART_WIDTH, CHART_HEIGHT, CHART_HOURS = 480, 200, 27


def chart() -> bytes:
    """A one-bit PNG of a tide curve over a night, uncompressed so that it never differs."""
    rows = b"".join(b"\0" + _row(y) for y in range(CHART_HEIGHT))
    head = struct.pack(">2I5B", CHART_WIDTH, CHART_HEIGHT, 1, 0, 0, 0, 0)
    chunks = (b"IHDR", head), (b"IDAT", stored(rows)), (b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)


def stored(data: bytes) -> bytes:
    """A zlib stream of one stored block: no compressor, so no compressor's whims."""
    size = struct.pack("<2H", len(data), len(data) ^ 0xFFFF)
    return b"\x78\x01\x01" + size + data + struct.pack(">I", zlib.adler32(data))


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _row(y: int) -> bytes:
    white = ["0" if _inked(x, y) else "1" for x in range(CHART_WIDTH)]
    bits = "".join(white)
    return bytes(int(bits[n : n + 8], 2) for n in range(0, CHART_WIDTH, 8))


def _inked(x: int, y: int) -> bool:
    """The curve two pixels thick, the axis below, and a tick for each hour."""
    hour = x * CHART_HOURS / CHART_WIDTH
    level = 96 - 78 * cos((hour - 11.28) * 0.51)
    baseline = CHART_HEIGHT - 12
    tick = x % (CHART_WIDTH // CHART_HOURS) == 0 and baseline < y < baseline + 6
    return abs(y - level) < 1.5 or y == baseline or tick


# ── sameness ─────────────────────────────────────────────────────────────────

ALPHABET = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"


def share(seed: str) -> float:
    """A number from 0 to 1 that a text always gives."""
    return int.from_bytes(sha256(seed.encode()).digest()[:4]) / 2**32


def token(seed: str, length: int) -> str:
    digest = sha256(seed.encode()).digest()
    return "".join(ALPHABET[byte % len(ALPHABET)] for byte in digest[:length])


if __name__ == "__main__":
    RECORDING.write_text(record(), "utf-8")
    print(f"{RECORDING.name}: {RECORDING.stat().st_size:,} bytes")
