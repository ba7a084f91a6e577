"""Edits of JSON text in which nothing but the edited stretch changes.

Comments, trailing commas, indentation, line ends and the order of keys stay as they
are. A path is a sequence of keys. What cannot be read raises `Malformed` with the line
and column.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

DEEPEST = 100
"""Nesting beyond this is no configuration."""


class Malformed(ValueError):
    """A file's text that is not what it should be, or can't take what is put into it."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value, where it stands in the text, and what it holds."""

    start: int
    end: int
    value: Any
    children: tuple["Child", ...] = ()


@dataclass(frozen=True, slots=True)
class Child:
    """A member of an object, which starts with its key, or an item of a list."""

    key: str | int
    start: int
    node: Node


def read(text: str, *, comments: bool = True) -> Any:
    """The value of a JSON text; with comments and trailing commas where those are allowed."""
    return parse(text, comments=comments).value


def parse(text: str, *, comments: bool = True) -> Node:
    """The tree of a JSON text."""
    reader = _Reader(text, comments)
    node = reader.value(0)
    reader.skip()
    if reader.at < len(text):
        reader.fail("there is more text after the value")
    return node


def put(text: str, path: Sequence[str | int], value: Any, *, comments: bool = True) -> str:
    """The text with `value` at `path`; objects on the way are made where they are missing."""
    root = parse(text, comments=comments)
    node, rest = _walk(root, path)
    if not rest:
        new = _Layout.of(text, root).dumped(value, _indent_at(text, node.start))
        return text[: node.start] + new + text[node.end :]
    if not isinstance(node.value, dict):
        message = f"{_shown(path[: -len(rest)])} is not an object, so nothing can be put into it"
        raise Malformed(message)
    for key in reversed(rest[1:]):
        value = {key: value}
    return _insert(text, root, node, value, str(rest[0]))


def append(text: str, path: Sequence[str | int], value: Any, *, comments: bool = True) -> str:
    """The text with `value` at the end of the list at `path`, made where it is missing."""
    root = parse(text, comments=comments)
    node, rest = _walk(root, path)
    if rest:
        return put(text, path, [value], comments=comments)
    if not isinstance(node.value, list):
        message = f"{_shown(path)} is not a list, so nothing can be added to it"
        raise Malformed(message)
    return _insert(text, root, node, value)


def remove(text: str, path: Sequence[str | int], *, comments: bool = True) -> str:
    """The text without what stands at `path`; as it is where nothing does."""
    parent, rest = _walk(parse(text, comments=comments), path[:-1])
    places = [i for i, child in enumerate(parent.children) if child.key == path[-1]]
    if rest or not places:
        return text
    place = places[-1]
    child = parent.children[place]
    comma = _comma(text, child.node.end)
    end = child.node.end if comma is None else comma + 1
    behind = parent.children[place - 1].node.end if place else parent.start + 1
    start = _gap_start(text, behind, child.start, end)
    head = text[:start]
    if place and comma is None:
        earlier = _comma(text, parent.children[place - 1].node.end)
        assert earlier is not None
        head = text[:earlier] + text[earlier + 1 : start]
    return _closed(head + text[end:], parent.start)


# ── reading ──────────────────────────────────────────────────────────────────

_STRINGS = json.JSONDecoder()
_BLANK = re.compile(r"[ \t\r\n\ufeff]*")
_COMMENT = re.compile(r"//[^\r\n]*|/\*.*?\*/", re.DOTALL)
_PLAIN = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?|true|false|null")


@dataclass(slots=True)
class _Reader:
    text: str
    comments: bool
    at: int = 0

    def value(self, depth: int) -> Node:
        self.skip()
        start = self.at
        match self.text[start : start + 1]:
            case "{":
                children = tuple(self._children(depth, "}"))
                held: Any = {child.key: child.node.value for child in children}
            case "[":
                children = tuple(self._children(depth, "]"))
                held = [child.node.value for child in children]
            case '"':
                held, children = self.string(), ()
            case _:
                held, children = self._plain(), ()
        return Node(start, self.at, held, children)

    def string(self) -> str:
        try:
            text, self.at = _STRINGS.raw_decode(self.text, self.at)
        except json.JSONDecodeError as error:
            self.at = error.pos
            self.fail("a string that does not end")
        return text

    def skip(self) -> None:
        """Past blanks and comments."""
        while True:
            blank = _BLANK.match(self.text, self.at)
            self.at = blank.end() if blank else self.at
            comment = _COMMENT.match(self.text, self.at)
            if comment is None:
                return
            if not self.comments:
                self.fail("a comment, which this file's host can't read")
            self.at = comment.end()

    def fail(self, what: str) -> NoReturn:
        line = self.text.count("\n", 0, self.at) + 1
        column = self.at - self.text.rfind("\n", 0, self.at)
        message = f"line {line}, column {column}: {what}"
        raise Malformed(message)

    def _children(self, depth: int, close: str) -> Iterator[Child]:
        if depth > DEEPEST:
            self.fail("nested too deeply")
        self.at += 1
        self.skip()
        number = 0
        while not self._takes(close):
            start = self.at
            key = self._key() if close == "}" else number
            yield Child(key, start, self.value(depth + 1))
            number += 1
            self.skip()
            has_comma = self._takes(",")
            self.skip()
            is_last = self.text.startswith(close, self.at)
            if not has_comma and not is_last:
                self.fail(f"expected a comma or {close!r}")
            if has_comma and is_last and not self.comments:
                self.fail("a comma with nothing after it")

    def _key(self) -> str:
        if not self.text.startswith('"', self.at):
            self.fail("expected a key in double quotes")
        key = self.string()
        self.skip()
        if not self._takes(":"):
            self.fail("expected a colon")
        return key

    def _takes(self, mark: str) -> bool:
        if not self.text.startswith(mark, self.at):
            return False
        self.at += 1
        return True

    def _plain(self) -> Any:
        found = _PLAIN.match(self.text, self.at)
        if found is None:
            self.fail("expected a value")
        self.at = found.end()
        return json.loads(found[0])


def _walk(node: Node, path: Sequence[str | int]) -> tuple[Node, Sequence[str | int]]:
    """The deepest node on a path, and the part of the path that is not there."""
    for depth, key in enumerate(path):
        # Of a key that stands twice the last counts, as for every reader of JSON.
        found = next((c.node for c in reversed(node.children) if c.key == key), None)
        if found is None:
            return node, path[depth:]
        node = found
    return node, ()


# ── writing ──────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Layout:
    """How a file is written."""

    unit: str
    """One step of indentation; empty where everything stands on one line."""
    newline: str
    colon: str

    @classmethod
    def of(cls, text: str, root: Node) -> "_Layout":
        newline = "\r\n" if "\r\n" in text else "\n"
        if not root.children:
            return cls("  ", newline, ": ")
        first = root.children[0]
        is_broken = "\n" in text[root.start : first.start]
        unit = (_indent_at(text, first.start) or "  ") if is_broken else ""
        tight = isinstance(first.key, str) and re.match(r'"[^"\\]*":\S', text[first.start :])
        return cls(unit, newline, ":" if tight else ": ")

    def dumped(self, value: Any, indent: str) -> str:
        if not self.unit:
            comma = "," if self.colon == ":" else ", "
            return json.dumps(value, ensure_ascii=False, separators=(comma, self.colon))
        text = json.dumps(value, ensure_ascii=False, indent=self.unit, separators=(",", self.colon))
        return text.replace("\n", self.newline + indent)


def _insert(text: str, root: Node, parent: Node, value: Any, key: str | None = None) -> str:
    """The text with a value as the last child of an object or a list."""
    layout = _Layout.of(text, root)
    inside = _indent_at(text, parent.start) + layout.unit
    if parent.children:
        last = parent.children[-1]
        is_broken = "\n" in text[parent.start : last.start]
        inside = _indent_at(text, last.start) if is_broken else ""
        layout = layout if is_broken else _Layout("", layout.newline, layout.colon)
    head = "" if key is None else json.dumps(key, ensure_ascii=False) + layout.colon
    piece = head + layout.dumped(value, inside)
    if parent.children:
        return _behind(text, parent, piece, layout, inside)
    return _alone(text, parent, piece, layout, inside)


def _behind(text: str, parent: Node, piece: str, layout: _Layout, inside: str) -> str:
    """The piece behind the last child and its comments, with the comma where it belongs."""
    last, close = parent.children[-1].node.end, parent.end - 1
    comma = _comma(text, last)
    if not layout.unit:
        gap = " " if layout.colon == ": " else ""
        if comma is not None:
            return text[: comma + 1] + gap + piece + "," + text[comma + 1 :]
        return text[:last] + "," + gap + piece + text[last:]
    tail = last + len(text[last:close].rstrip())
    new = layout.newline + inside + piece
    if comma is not None:
        return text[:tail] + new + "," + text[tail:]
    return text[:last] + "," + text[last:tail] + new + text[tail:]


def _alone(text: str, parent: Node, piece: str, layout: _Layout, inside: str) -> str:
    """The piece in an empty object or list, behind the comments in it."""
    open_end, close = parent.start + 1, parent.end - 1
    if not layout.unit:
        return text[:open_end] + piece + text[open_end:]
    within = text[open_end:close].rstrip()
    outside = layout.newline + inside.removesuffix(layout.unit)
    return text[:open_end] + within + layout.newline + inside + piece + outside + text[close:]


def _gap_start(text: str, behind: int, start: int, end: int) -> int:
    """From where to cut a child that ends at `end`: with the blanks before it.

    They stay where they part a line comment from what follows the child on its line. Such
    a comment stands behind the value before it; within that, `//` is text.
    """
    before = len(text[:start].rstrip())
    line = text[max(behind, text.rfind("\n", 0, before) + 1) : before]
    follows = re.compile(r"[ \t]*[^ \t\r\n]").match(text, end)
    return start if "//" in line and follows else before


def _closed(text: str, start: int) -> str:
    """The text with the object or list at `start` closed up, where only blanks are left in it."""
    close = re.compile(r"[ \t\r\n]*(?=[\]}])").match(text, start + 1)
    return text[: start + 1] + text[close.end() :] if close else text


def _comma(text: str, at: int) -> int | None:
    """Where the comma behind a value stands, if one does."""
    reader = _Reader(text, comments=True, at=at)
    reader.skip()
    return reader.at if text.startswith(",", reader.at) else None


def _indent_at(text: str, at: int) -> str:
    """The blanks at the beginning of the line."""
    line = text[text.rfind("\n", 0, at) + 1 : at]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _shown(path: Sequence[str | int]) -> str:
    return ".".join(map(str, path)) or "the file's value"
