"""The working set: the files, symbols, commands and ids most likely to be needed next.

What was named often, lately, and by the assistant itself is what it names next
(measured on real compactions: such a list keeps three times as much of what is
needed later as a model-written summary of its size). An entry of the index says
what the thing is and where it stands, and which reference opens its original.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from mcp_context_server.core.messages import Message
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.summary.digest import Digest, FileUse, digest
from mcp_context_server.core.summary.extract import Mention, Place, names_of
from mcp_context_server.core.summary.identifiers import is_noise, shape_of, texts_in
from mcp_context_server.core.summary.steps import Step, subject
from mcp_context_server.core.text import one_line

Kind = Literal["file", "path", "symbol", "constant", "commit", "uuid", "argument", "directory"]

PlaceKind = Literal["file", "command", "search", "report", "tool", "talk"]

PLACE_WEIGHTS: Mapping[Place, float] = {
    "call": 5.0,
    "said": 4.0,
    "asked": 4.0,
    "result": 1.0,
    "told": 0.3,
}
"""How much a mention says about what will be needed, by where it stands."""

OWN_PLACES: frozenset[Place] = frozenset({"call", "said", "asked"})
"""Where the user and the assistant name things themselves."""

_AGE_OFFSET_MESSAGES = 20
"""A mention weighs 1 / (this + its age in messages)."""


@dataclass(frozen=True, slots=True)
class Where:
    """What a thing belongs to: a file by path, a command by program, a report by title."""

    kind: PlaceKind
    label: str


NOWHERE = Where("talk", "")


@dataclass(frozen=True, slots=True)
class WorkingItem:
    """One thing of the working set."""

    kind: Kind
    name: str
    where: Where
    """What it belongs to: where it stands most."""
    sources: tuple[str, ...]
    """The calls in which it stands there, newest first; else the message it was named in."""
    weight: float


@dataclass(frozen=True, slots=True)
class WorkingSet:
    """The weightiest things of a conversation, weightiest first, and its files."""

    items: tuple[WorkingItem, ...]
    files: Mapping[str, FileUse]
    steps: Mapping[str, Step]
    """By call id."""

    @property
    def file_names(self) -> frozenset[str]:
        """The files as names, the way `names_in` would find them."""
        return frozenset(path.strip("./-") for path in self.files)

    def what_is(self, item: WorkingItem) -> str:
        """What a name is defined as, as far as the text tells; `func` where it is called."""
        steps = [self.steps[id] for id in item.sources[:_LOOKED_UP_PASSAGES] if id in self.steps]
        return next((what for step in steps if (what := _what(item.name, step))), "")

    def by_worth(self) -> list[WorkingItem]:
        """The items in the order in which a short index should take them.

        A name is worth its weight by length, and less the more names of the same
        place went before it, so that no single file fills the index.
        """
        before, valued = Counter[Where](), list[tuple[float, WorkingItem]]()
        for item in self.items:
            valued.append((_worth(item, before[item.where]), item))
            before[item.where] += item.kind != "file"
        return [item for _, item in sorted(valued, key=lambda pair: -pair[0])]


def _worth(item: WorkingItem, before: int) -> float:
    if item.kind == "file":
        return _FILE_FACTOR * item.weight / _FILE_CHARS**_LENGTH_EXPONENT
    length = (len(item.name) + _NAME_OVERHEAD_CHARS) ** _LENGTH_EXPONENT
    worth = item.weight / length / (1 + before / _SAME_PLACE_NAMES)
    if item.kind == "path" and item.where.kind == "file":
        return worth * _ALIAS_FACTOR
    return worth * _MEMBER_FACTOR if _MEMBER.match(item.name) else worth


_FILE_CHARS = 20
"""A file counts as if its path were no longer than this: it brings its names along."""
_FILE_FACTOR = 2.0
_NAME_OVERHEAD_CHARS = 4
_LENGTH_EXPONENT = 0.6
_SAME_PLACE_NAMES = 20
_ALIAS_FACTOR = 0.3
"""A shorter name of a listed file says little more."""
_MEMBER = re.compile(r"[a-z]\w*(?:\.\w+)+$")
_MEMBER_FACTOR = 0.6
"""`strings.Join` and `node.ID` say less than a name of the project's own."""


def working_set(
    messages: Sequence[Message], *, limit: int | None = None, policy: Policy | None = None
) -> WorkingSet:
    """The `limit` weightiest things of a conversation."""
    policy = policy or Policy()
    story = digest(messages, policy.compactable_tools)
    return weighed_set(messages, story, limit=limit, policy=policy)


def weighed_set(
    messages: Sequence[Message],
    story: Digest,
    *,
    policy: Policy,
    limit: int | None = None,
    focus: Collection[str] = (),
) -> WorkingSet:
    """The working set of messages whose story is known already; `focus` names go first."""
    mentions = list(_weighed(messages, policy))
    weights, again = _weights(mentions)
    highest = max(weights.values(), default=0.0)
    weights |= {name: highest + weights[name] for name in focus if name in weights}
    chosen = _weightiest(weights, policy.working_set_items if limit is None else limit)
    steps = {step.action.id: step for step in story.steps}
    described = _described(chosen, weights, mentions, story, steps)
    usual = again.union(focus)
    kept = tuple(each for each in described if each.name in usual or each.where.kind == "file")
    return WorkingSet(kept, story.files, steps)


def _weightiest(weights: Mapping[str, float], most: int) -> list[str]:
    """Names by weight, then by themselves; noise left out."""
    ranked = sorted(weights.values(), reverse=True)
    least = ranked[min(len(ranked), 2 * most) - 1] if ranked else 0.0
    telling = (n for n, weight in weights.items() if weight >= least and not is_noise(n))
    return sorted(telling, key=lambda name: (-weights[name], name))[:most]


@dataclass(frozen=True, slots=True)
class _Weighed:
    mention: Mention
    message_id: str
    weight: float


def _weighed(messages: Sequence[Message], policy: Policy) -> Iterator[_Weighed]:
    """Every passage's names with their weight; of the oldest passages only the beginning."""
    unread = policy.names_scan_chars
    for age, message in enumerate(reversed(messages)):
        limit = policy.names_passage_chars if unread > 0 else policy.names_old_passage_chars
        for mention in names_of(message, longest_passage_chars=limit):
            weight = PLACE_WEIGHTS[mention.place] / (_AGE_OFFSET_MESSAGES + age)
            yield _Weighed(mention, message.id, weight)
            unread -= mention.chars


def _weights(mentions: Iterable[_Weighed]) -> tuple[dict[str, float], set[str]]:
    """The weight of every name, and the names that came up twice or in our own words."""
    weights, seen, again = defaultdict[str, float](float), set[str](), set[str]()
    for each in mentions:
        names, weight = each.mention.names, each.weight
        again |= names if each.mention.place in OWN_PLACES else seen & names
        seen |= names
        for name in names:
            weights[name] += weight
    return {n: w if n in again else w * _ONCE_FACTOR for n, w in weights.items()}, again


_ONCE_FACTOR = 0.15
"""A name that one result showed is seldom needed; in a file that was read, now and then."""


# ── what a thing is, and where it stands ─────────────────────────────────────


def _described(
    chosen: Sequence[str],
    weights: Mapping[str, float],
    mentions: Sequence[_Weighed],
    story: Digest,
    steps: Mapping[str, Step],
) -> Iterator[WorkingItem]:
    used = story.files
    sources = _sources(set(chosen), mentions)
    known = {path.strip("./-"): path for path in used}
    tails = {tail: path for path in used for tail in _tails(path)}
    parents = {parent for path in used for parent in _parents(path.strip("./-"))}
    arguments = {key for step in story.steps for key in step.action.arguments}
    places = {id: place_of(step) for id, step in steps.items()}
    for name in chosen:
        weight = weights[name]
        if name in known:
            path = known[name]
            where = Where("file", path)
            yield WorkingItem("file", path, where, (used[path].last_call_id,), weight)
        elif name in arguments:
            yield WorkingItem("argument", name, NOWHERE, (), weight)
        elif name in tails:
            yield WorkingItem("path", name, Where("file", tails[name]), (), weight)
        elif name in parents:
            yield WorkingItem("directory", name, NOWHERE, (), weight)
        else:
            yield _placed(name, weight, sources.get(name, {}), places)


def _tails(path: str) -> Iterator[str]:
    """`a/b/c.py` → `b/c.py`: shorter names that the same file goes by."""
    parts = path.strip("/").split("/")
    return ("/".join(parts[i:]) for i in range(1, len(parts) - 1))


def _parents(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _sources(
    chosen: set[str], mentions: Iterable[_Weighed]
) -> Mapping[str, Mapping[tuple[str, str], float]]:
    """By name, the passages it stands in with their weight: (call id, message id)."""
    found = defaultdict[str, dict[tuple[str, str], float]](dict)
    for each in mentions:
        source = (each.mention.source, each.message_id)
        for name in chosen & each.mention.names:
            found[name][source] = found[name].get(source, 0) + each.weight
    return found


def _placed(
    name: str,
    weight: float,
    sources: Mapping[tuple[str, str], float],
    places: Mapping[str, Where],
) -> WorkingItem:
    """The item with the place where it stands most."""
    shape = shape_of(name)
    by_place = defaultdict[Where, float](float)
    for (call_id, _), share in sources.items():
        if call_id in places:
            by_place[places[call_id]] += share
    if not by_place:
        message_id = max(sources, key=lambda s: sources[s])[1] if sources else ""
        return WorkingItem(shape, name, NOWHERE, (message_id,), weight)
    where = max(by_place, key=lambda place: by_place[place])
    ids = tuple(call for call, _ in sources if places.get(call) == where)
    return WorkingItem(shape, name, where, ids, weight)


def place_of(step: Step) -> Where:
    """The file a step is about, else the command, search or report it belongs to."""
    if step.paths:
        return Where("file", step.paths[0])
    action = step.action
    match action.role:
        case "shell":
            return Where("command", subject(action))
        case "grep" | "glob":
            return Where("search", "")
        case "subagent" | "web_search" | "web_fetch" | "ask" | "skill":
            return Where("report", one_line(action.gist, 60))
        case _:
            return Where("tool", action.tool)


_BEFORE = re.compile(
    r"\b(def|class|func|function|fn|type|interface|struct|enum|trait|const|let|var|module|package"
    r"|import|impl|macro|protocol|object|record|val|table|TABLE)\s+(?:\([^()\n]{0,60}\)\s*)?$"
)
_KINDS: Mapping[str, str] = {
    "def": "func", "function": "func", "fn": "func", "interface": "type", "struct": "type",
    "enum": "type", "trait": "type", "protocol": "type", "record": "type", "let": "var",
    "val": "var", "TABLE": "table", "object": "type",
}  # fmt: skip


def _what(name: str, step: Step) -> str:
    """What a name is defined as in a step's text; else `func` where it is called; else empty."""
    texts = list(texts_in(step.action.arguments))
    if step.outcome:
        texts.append(step.outcome.text)
    is_called = False
    for text in texts:
        at = text.find(name)
        for _ in range(_LOOKED_UP_PLACES):
            if at < 0:
                break
            before = _BEFORE.search(text[max(0, at - 80) : at])
            if before:
                return _KINDS.get(before[1], before[1])
            end = at + len(name)
            is_called = is_called or text[end : end + 1] == "("
            at = text.find(name, end)
    return "func" if is_called else ""


_LOOKED_UP_PASSAGES = 3
_LOOKED_UP_PLACES = 8
