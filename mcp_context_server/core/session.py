"""A session: what its transcript folds to, and what that costs in tokens.

`fold` takes a session and the entries that came after it, and gives the session
after them. Its cost is that of the new entries; only an edit of the view, which
is rare, looks at the whole of it.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from heapq import nlargest
from itertools import chain
from operator import attrgetter
from types import MappingProxyType
from typing import Any, assert_never, cast

from mcp_context_server.core.breaker import Breaker
from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    Configure,
    Delegate,
    DiscoverTools,
    DropThinking,
    Edit,
    Entry,
    Follow,
    Learn,
    Mend,
    Queue,
    Recover,
    RegisterTools,
    Remember,
    Replace,
    ReportFailure,
    ReportUsage,
    Rewind,
    StageNotes,
    Undo,
    apply,
    exchanged,
    position,
    standing,
    with_exchanged,
)
from mcp_context_server.core.growth import Growth
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.memory.notes import Mark, SessionMemory, remembered
from mcp_context_server.core.messages import (
    Message,
    Messages,
    is_call,
    is_prompt,
    is_result,
    message_text,
)
from mcp_context_server.core.models import lookup
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.steps import RecoveryState, after_success
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import (
    EMPTY,
    Tally,
    block_tokens,
    has_media,
    message_tokens,
    tally_message,
    tally_messages,
    tally_system,
)
from mcp_context_server.core.tokens.images import Media, media_of
from mcp_context_server.core.tokens.usage import (
    SYNTHETIC_MODEL,
    Usage,
    normalise_usage,
    unread_from_cache,
)
from mcp_context_server.core.tool_roles import tool_path
from mcp_context_server.core.toolsearch.deferral import AUTO, SearchMode
from mcp_context_server.core.toolsearch.toolset import (
    Batches,
    Terms,
    Toolset,
    with_batch,
    with_discovered,
    with_terms,
)
from mcp_context_server.core.window import Window, window

Numbered = tuple[int, Entry]
"""An entry with its sequence number, from 1."""


OPENING_CHARS = 200
"""How much is remembered of a session's first request."""

PREVIOUS_VIEWS = 3
"""Boundaries behind which a host may go back; further back it can't be followed."""


@dataclass(frozen=True, slots=True)
class Caller:
    """The call behind a result: the tool's name and the file it was about, if any."""

    tool: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Contributor:
    """One result in the view, for the list of the largest."""

    tokens: int
    tool: str
    path: str
    tool_use_id: str
    message_id: str


@dataclass(frozen=True, slots=True)
class Anchor:
    """The last reported usage, and what of the view it covers."""

    usage: Usage
    before: Tally
    """The view's tally when the request was sent."""
    chunks: Tally
    """The tally of the response's chunks so far."""
    response: str | None
    """Id of the API response it was reported for."""
    tools: float = 0.0
    """Tokens of the registered definitions that the request carried."""
    last: str | None = None
    """Id of the newest message that the report accounts for."""
    revision: int = 0
    """The session's when it was reported."""

    @property
    def tokens(self) -> int:
        """Tokens in the window that the report accounts for."""
        return self.usage.context if self._holds_response else self.usage.prompt

    @property
    def base(self) -> Tally:
        """The part of the view's tally that `tokens` accounts for."""
        return self.before + self.chunks if self._holds_response else self.before

    @property
    def _holds_response(self) -> bool:
        return self.usage.holds_response(estimated=self.chunks.total)


@dataclass(frozen=True, slots=True)
class Overhead:
    """Tokens that every request carries besides the view: system prompt, tools, memory files."""

    tokens: float
    at: float
    """The view's tally when it was worked out; the smaller, the surer."""
    tools: float = 0.0
    """Tokens of the registered definitions among them."""


@dataclass(frozen=True, slots=True)
class Session:
    """What is known of a conversation at one version."""

    version: int = 0
    settings: Configure = field(default_factory=Configure)
    policy: Policy = field(default_factory=Policy)
    model: str = ""
    """The model it was opened with, else the one of the newest response."""
    learned: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Context windows in tokens that overflow errors told, by model."""
    view: Messages = ()
    ledger: Ledger = field(default_factory=Ledger)
    """The view in figures."""
    tally: Tally = EMPTY
    """Tokens of the view by class, for this model."""
    unreached: Tally = EMPTY
    """What left the view here though the host that is followed sends it still."""
    system_tally: Tally = EMPTY
    """Tokens of the system prompt it was opened with."""
    search_mode: SearchMode = AUTO
    tools: Toolset | None = None
    """The registered tools; None where nobody registered any."""
    anchor: Anchor | None = None
    overhead: Overhead | None = None
    calibration: Calibration = field(default_factory=Calibration)
    unread_tokens: int = 0
    """Tokens that the newest report shows were cached and not read, with the view as it was."""
    largest: tuple[Contributor, ...] = ()
    open_calls: Mapping[str, Caller] = field(default_factory=lambda: MappingProxyType({}))
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Ids that open calls came with, and those that they have in the view."""
    made_up: frozenset[str] = frozenset()
    """Calls whose result in the view is made up, since the real one has not come."""
    edits: tuple[tuple[int, Edit], ...] = ()
    """Every edit of the view that counts, with its sequence number, oldest first."""
    boundary: Compact | None = None
    boundaries: int = 0
    previous: tuple[Messages, ...] = ()
    """The views just before the newest boundaries, newest first; a host may go back to them."""
    follow: Follow | None = None
    responses: int = 0
    last_response_at: str | None = None
    responded: int = 0
    """The sequence number of the newest response: what was planned before it has been sent."""
    revision: int = 0
    """The sequence number of the newest edit that changed the view."""
    undone: int = 0
    """The sequence number of the newest undo."""
    media: Media = field(default_factory=Media)
    """The images and documents in the view."""
    queued: tuple[tuple[int, Queue], ...] = ()
    """Clearings that wait for a cold cache, with their sequence numbers, oldest first."""
    delegated: tuple[Delegate, ...] = ()
    """What the host was told to clear in its own cache since the view last changed under it."""
    staged: tuple[Collapse, ...] = ()
    """Notes for groups of old rounds that are ready to be committed, oldest first."""
    breaker: Breaker = field(default_factory=Breaker)
    recovery: RecoveryState = field(default_factory=RecoveryState)
    """What was tried since the last response came back."""
    memory: SessionMemory = field(default_factory=SessionMemory)
    told: Mark = field(default_factory=Mark)
    """How far the conversation has come, whatever has left the view since."""
    growth: Growth = field(default_factory=Growth)
    """The window at each response so far, across boundaries."""
    opening: str = ""
    """How the first request of a person begins, if there was one."""

    family: str = field(init=False, default="")
    """The tokenizer family of its model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "family", lookup(self.model).tokenizer)

    @property
    def follows(self) -> bool:
        """Whether a host writes its transcript and decides what is sent, whatever the view is."""
        return bool(self.settings.transcript)

    @property
    def sent(self) -> Tally:
        """Tokens by class of what stands in the model's window: the view's, or the host's."""
        return self.tally + self.unreached

    @property
    def tools_tally(self) -> Tally:
        """Tokens of the registered definitions that stand in the prompt."""
        return self.tools.tally if self.tools else EMPTY


def fold(
    session: Session,
    entries: Iterable[Numbered],
    *,
    version: int,
    batches: Batches = MappingProxyType({}),
) -> Session:
    """The session at `version`, after more entries; undone ones left out (see `standing`).

    `batches` has the tool definitions that the entries name by digest.
    """
    run: list[Message] = []
    responded = session.responded
    for sequence, entry in entries:
        if isinstance(entry, Message):
            run.append(entry)
            responded = sequence if entry.role == "assistant" else responded
        else:
            session = _with_messages(session, run)
            session, run = _with_edit(session, sequence, entry, batches), []
    return replace(_with_messages(session, run), version=version, responded=responded)


def fold_all(
    blank: Session, entries: Sequence[Entry], *, batches: Batches = MappingProxyType({})
) -> Session:
    """The session of a whole transcript, oldest entry first; what was undone is left out.

    What the API reported before an undo, it reported of the view as it stood then.
    """
    undone = max((n for n, entry in enumerate(entries, 1) if isinstance(entry, Undo)), default=0)
    start = replace(blank, undone=undone)
    session = fold(start, standing(entries), version=len(entries), batches=batches)
    report = _report_before_an_undo(entries)
    if report is None or session.anchor is None:
        return session
    then = fold(blank, standing(entries[:report]), version=report, batches=batches)
    if then.anchor is None:
        return session
    anchor = replace(session.anchor, before=then.anchor.before)
    return replace(session, anchor=anchor, overhead=then.overhead, calibration=then.calibration)


def _report_before_an_undo(entries: Sequence[Entry]) -> int | None:
    """The sequence number of the newest usage report, if what it counted was undone since."""
    numbers = range(len(entries), 0, -1)
    report = next((number for number in numbers if _is_report(entries[number - 1])), 0)
    since = (entry for entry in entries[report:] if isinstance(entry, Undo))
    return report if any(entry.sequence < report for entry in since) else None


def _is_report(entry: Entry) -> bool:
    match entry:
        case Message():
            told = entry.usage if entry.model != SYNTHETIC_MODEL else None
            return bool(told) and normalise_usage(told) is not None
        case Recover():
            return entry.input_tokens is not None
        case _:
            return isinstance(entry, ReportUsage)


def session_window(session: Session) -> Window:
    """The window of a session's model, with what the session was told and has learned."""
    return window(
        session.model,
        session.policy,
        learned_tokens=session.learned.get(session.model),
        override_tokens=session.settings.context_window,
        max_output=session.settings.max_output,
    )


def used_tokens(session: Session) -> float:
    """Tokens in the window now: the last usage and what came after it, else an estimate of all."""
    factor, anchor = session.calibration.factor, session.anchor
    if anchor is None:
        return fixed_tokens(session) + factor * session.tally.total
    # What was cleared since the report counts against it.
    since = session.tally.total - anchor.base.total + tools_since(session, anchor.tools)
    return max(0.0, anchor.tokens + factor * since)


def window_tokens(session: Session) -> float:
    """Tokens in the model's window now; a host that is followed sends what left the view, too."""
    return used_tokens(replace(session, tally=session.sent, unreached=EMPTY))


def since_usage(session: Session) -> Tally:
    """The tally of what the last usage does not cover, in the model's window."""
    return session.sent - session.anchor.base if session.anchor else session.sent


def fixed_tokens(session: Session) -> float:
    """Tokens of every request besides the view: as given, or as the usage showed them."""
    factor, shown = session.calibration.factor, session.overhead
    given = factor * (session.system_tally.total + session.tools_tally.total)
    if shown is None:
        return given
    return max(given, shown.tokens + factor * tools_since(session, shown.tools))


def tools_since(session: Session, covered: float) -> float:
    """Tokens of definitions in the prompt beyond the `covered`, before calibration."""
    return session.tools_tally.total - covered


def contributors(view: Iterable[Message], family: str) -> Iterator[Contributor]:
    """Every result of a view with what it takes and the call behind it, in order."""
    callers: dict[str, Caller] = {}
    for message in view:
        callers.update(_callers(message))
        yield from _results_of(message, callers, family)


def largest_results(session: Session, view: Messages, ledger: Ledger) -> tuple[Contributor, ...]:
    """The largest results of a view, largest first; only their messages are looked at."""
    family, count = session.family, session.policy.largest_count
    largest = nlargest(count, map(attrgetter("tokens"), chain.from_iterable(ledger.results)))
    least = largest[-1] if len(largest) == count > 0 else 0.0
    places = (place for place, tokens in enumerate(ledger.tokens) if tokens >= least)
    found: tuple[Contributor, ...] = ()
    for place in sorted(places, key=lambda place: (ledger.tokens[place], place), reverse=True):
        found = _among_largest(found, view[place], _callers_at(view, place), family, count)
    return found


def _callers_at(view: Messages, place: int) -> dict[str, Caller]:
    """The calls of a message, and of the assistant's just before it."""
    callers = _callers(view[place])
    for before in range(place - 1, -1, -1):
        if view[before].role != "assistant":
            break
        callers |= _callers(view[before])
    return callers


# ── appended messages ────────────────────────────────────────────────────────


def _with_messages(session: Session, run: list[Message]) -> Session:
    """The session after messages appended in a row; its model follows the responses'."""
    start = 0
    for index, message in enumerate(run):
        model = _answering_model(message)
        if session.settings.model is None and model and model != session.model:
            session = _with_model(_extended(session, run[start:index]), model)
            start = index
    return _extended(session, run[start:])


def _answering_model(message: Message) -> str | None:
    return None if message.model == SYNTHETIC_MODEL else message.model


def _extended(session: Session, run: list[Message]) -> Session:
    if not run:
        return session
    totals = _Totals(session)
    for message in run:
        totals.add(message)
    return totals.closed(run)


class _Totals:
    """Running totals while messages are appended; lives inside one `_extended`."""

    def __init__(self, session: Session) -> None:
        self.session, self.family = session, session.family
        self.tally, self.anchor = session.tally, session.anchor
        self.overhead, self.calibration = session.overhead, session.calibration
        self.largest, self.open_calls = session.largest, dict(session.open_calls)
        self.responses, self.last_response_at = session.responses, session.last_response_at
        self.media, self.tools = session.media, session.tools_tally.total
        self.made_up, self.unreached = session.made_up, session.unreached
        self.unread_tokens = session.unread_tokens
        self.told_tokens, self.told_calls = session.told.tokens, session.told.calls
        self.growth = session.growth
        self.opening = session.opening

    def add(self, message: Message) -> None:
        tally = tally_message(message, self.family)
        if is_prompt(message):
            self.growth = self.growth.prompted()
        self._anchor(message, tally)
        self.tally = self.tally + tally
        self.told_tokens += tally.total
        self.told_calls += len(message.calls)
        self.opening = self.opening or _opening(message)
        if tally.image or tally.document:
            self.media = self.media + media_of(message)
        if message.calls or message.results:
            self._pair(message)
        if message.role == "assistant":
            self.responses += 1
            self.last_response_at = message.timestamp or self.last_response_at

    def _anchor(self, message: Message, tally: Tally) -> None:
        told = message.usage if message.model != SYNTHETIC_MODEL else None
        usage = normalise_usage(told) if told else None
        if (
            self.anchor
            and message.api_message_id
            and message.api_message_id == self.anchor.response
        ):
            newest = usage or self.anchor.usage
            chunks = self.anchor.chunks + tally
            self.anchor = replace(self.anchor, usage=newest, chunks=chunks, last=message.id)
            if usage is not None:
                self.growth = _grown(self.growth, self.anchor)
        elif usage is not None:
            response = message.api_message_id
            sent = self.tally + self.unreached
            self._report(Anchor(usage, sent, tally, response, last=message.id))

    def _report(self, anchor: Anchor) -> None:
        anchor = replace(anchor, tools=self.tools, revision=self.session.revision)
        self.unread_tokens = _unread(self.anchor, anchor)
        if self.anchor is not None and self.anchor.tools == anchor.tools:
            self.calibration = self.calibration.observe(
                estimated=anchor.before.total - self.anchor.base.total,
                reported=anchor.usage.prompt - self.anchor.tokens,
            )
        self.anchor = anchor
        self.growth = _grown(self.growth, anchor)
        self.overhead = _overhead(self.overhead, anchor, self.calibration.factor)

    def _pair(self, message: Message) -> None:
        self.open_calls.update(_callers(message))
        count = self.session.policy.largest_count
        self.largest = _among_largest(self.largest, message, self.open_calls, self.family, count)
        for result in message.results:
            self.open_calls.pop(result, None)
        if self.made_up:
            self.made_up = self.made_up.difference(message.results)

    def closed(self, run: list[Message]) -> Session:
        session = self.session
        view, has_answer = (*session.view, *run), self.responses > session.responses
        return replace(
            session,
            view=view,
            ledger=session.ledger.extended(view, self.family),
            tally=self.tally,
            anchor=self.anchor,
            overhead=self.overhead,
            calibration=self.calibration,
            unread_tokens=self.unread_tokens,
            largest=self.largest,
            open_calls=MappingProxyType(self.open_calls),
            responses=self.responses,
            last_response_at=self.last_response_at,
            media=self.media,
            recovery=after_success(session.recovery) if has_answer else session.recovery,
            made_up=self.made_up,
            told=Mark(self.told_tokens, self.told_calls, run[-1].id),
            growth=self.growth,
            opening=self.opening,
        )


def _unread(before: Anchor | None, now: Anchor) -> int:
    """What was cached and not read, where nothing that stands here explains it."""
    if before is None or before.revision != now.revision:
        return 0
    return unread_from_cache(before.usage, now.usage)


def _grown(growth: Growth, anchor: Anchor) -> Growth:
    usage = anchor.usage
    return growth.reported(anchor.response, usage.prompt, usage.cache_read)


def _opening(message: Message) -> str:
    """How a person's request begins; empty for a host's command, and for what is no request."""
    if not is_prompt(message):
        return ""
    text = message_text(message).strip()
    return "" if text.startswith(("/", "<")) else text[:OPENING_CHARS]


def _overhead(known: Overhead | None, anchor: Anchor, factor: float) -> Overhead | None:
    """The hidden part of the request as this report shows it, where it is surer than before."""
    before = anchor.before.total
    hidden = anchor.usage.prompt - factor * before
    if hidden < 0 or (known is not None and before > known.at):
        return known
    return Overhead(hidden, before, anchor.tools)


def _callers(message: Message) -> dict[str, Caller]:
    return {
        block["id"]: Caller(str(block.get("name", "")), _path(block.get("input")))
        for block in (message.blocks if message.calls else ())
        if is_call(block)
    }


def _path(arguments: object) -> str:
    given = cast("dict[str, Any]", arguments) if isinstance(arguments, dict) else {}
    return tool_path(given) or ""


def _among_largest(
    largest: tuple[Contributor, ...],
    message: Message,
    callers: Mapping[str, Caller],
    family: str,
    count: int,
) -> tuple[Contributor, ...]:
    """The largest, with the results of one more message taken in."""
    floor = largest[-1].tokens if len(largest) >= count > 0 else 0
    if not message.results or message_tokens(message, family) <= floor:
        return largest
    ranked = sorted((*largest, *_results_of(message, callers, family)), key=lambda c: -c.tokens)
    return tuple(ranked[:count])


def _results_of(
    message: Message, callers: Mapping[str, Caller], family: str
) -> Iterator[Contributor]:
    for block in message.blocks if message.results else ():
        if is_result(block):
            tool_use_id = block["tool_use_id"]
            tokens = round(block_tokens(block, message.role, family))
            caller = callers.get(tool_use_id, Caller(""))
            yield Contributor(tokens, caller.tool, caller.path, tool_use_id, message.id)


# ── edits ────────────────────────────────────────────────────────────────────

_ViewEdit = Replace | DropThinking | Collapse | Compact | Rewind


def _with_edit(session: Session, sequence: int, edit: Edit, batches: Batches) -> Session:
    match edit:
        case Configure():
            return _configured(session, edit)
        case ReportUsage():
            return _reported(session, edit)
        case Learn():
            learned = {**session.learned, edit.model: edit.context_window}
            return _retooled(replace(session, learned=MappingProxyType(learned)))
        case Follow():
            return replace(session, follow=edit)
        case Queue() | Delegate() | StageNotes() | ReportFailure() | Recover() | Remember():
            return _noted(session, sequence, edit)
        case Mend() | Replace() | DropThinking() | Collapse() | Compact() | Rewind():
            return _as_host_sends(session, _rewritten(session, sequence, edit), edit)
        case RegisterTools():
            return _registered(session, edit, batches)
        case DiscoverTools():
            return _discovered(session, edit.names)
        case Undo():
            return session
        case _:
            assert_never(edit)


def _as_host_sends(session: Session, after: Session, edit: Mend | _ViewEdit) -> Session:
    """The session after an edit, with what of it a host that is followed doesn't know."""
    match edit:
        case Compact(summarizer="host") | Rewind(last=None):
            return replace(after, unreached=EMPTY)
        case Mend() | Rewind():
            return after
        case _ if edit.trigger == "host" or not session.follows:
            return after
        case _:
            return replace(after, unreached=session.sent.beyond(after.tally), anchor=session.anchor)


def _rewritten(
    session: Session,
    sequence: int,
    edit: Mend | _ViewEdit,
) -> Session:
    """The session after an edit of its view."""
    match edit:
        case Mend():
            return _mended(session, sequence, edit)
        case Replace():
            return _cleared(session, sequence, edit)
        case Collapse():
            notes = {message.id for message in edit.messages}
            left = tuple(g for g in session.staged if not notes & {m.id for m in g.messages})
            return replace(_edited(session, sequence, edit), staged=left)
        case Compact():
            return _compacted(session, sequence, edit)
        case DropThinking():
            return _edited(session, sequence, edit)
        case Rewind():
            return _rewound(session, sequence, edit)
        case _:
            assert_never(edit)


def _rewound(session: Session, sequence: int, edit: Rewind) -> Session:
    """The session gone back: what was withdrawn is no conversation that a memory should hold."""
    after = _edited(session, sequence, edit)
    if after is session:
        return session
    before = session.told if edit.last is not None else Mark()
    lost = _mark_of(session) if edit.last is not None else Mark()
    told, memory = before.without(lost).with_(_mark_of(after)), session.memory
    if memory.written is not None:
        memory = replace(memory, written=memory.written.at_most(told))
    after = replace(after, told=told, memory=memory)
    # Of a conversation that is gone entirely no report tells anything.
    return after if after.view else replace(after, anchor=None, overhead=None)


def _mark_of(session: Session) -> Mark:
    """How far a conversation of nothing but the view has come."""
    view = session.view
    last = view[-1].id if view else ""
    return Mark(session.tally.total, sum(len(message.calls) for message in view), last)


def _noted(
    session: Session,
    sequence: int,
    edit: Queue | Delegate | StageNotes | ReportFailure | Recover | Remember,
) -> Session:
    """What changes no view, but what is planned next."""
    match edit:
        case Queue():
            return replace(session, queued=(*session.queued, (sequence, edit)))
        case Delegate():
            return replace(session, delegated=(*session.delegated, edit))
        case StageNotes():
            return replace(session, staged=(*session.staged, *edit.groups))
        case Remember():
            memory = remembered(session.memory, edit, sequence, session.told)
            return replace(session, memory=memory)
        case ReportFailure():
            failed = session.breaker.failed(edit.at, edit.reason, used_tokens=edit.used_tokens)
            return replace(session, breaker=failed)
        case Recover():
            return _recovering(session, edit)
        case _:
            assert_never(edit)


def _recovering(session: Session, edit: Recover) -> Session:
    """The session after a refusal; an exact count in it is as good as a usage report."""
    session = replace(session, recovery=edit.state)
    if edit.input_tokens is None:
        return session
    return _anchored(session, Anchor(Usage(edit.input_tokens), session.sent, EMPTY, None))


def _configured(session: Session, edit: Configure) -> Session:
    told = edit.model_dump(exclude_none=True, exclude={"type", "at"})
    settings = session.settings.model_copy(update=told)
    known = session.policy.model_dump(exclude_unset=True)
    policy = Policy.model_validate({**known, **(edit.policy or {})})
    unreached = session.unreached if settings.transcript else EMPTY
    changed = replace(session, settings=settings, policy=policy, unreached=unreached)
    return _with_model(changed, settings.model or session.model)


def _with_model(session: Session, model: str) -> Session:
    """The session under a model; another tokenizer means another tally of everything."""
    family = lookup(model).tokenizer
    system = tally_system(session.settings.system or "", family)
    if family == session.family:
        return _retooled(replace(session, model=model, system_tally=system))
    changed = replace(
        session,
        model=model,
        system_tally=system,
        ledger=Ledger.of(session.view, family),
        tally=tally_messages(session.view, family),
        unreached=EMPTY,
        anchor=None,
        overhead=None,
        calibration=Calibration(),
    )
    largest = largest_results(changed, changed.view, changed.ledger)
    return _retooled(replace(changed, largest=largest))


def _reported(session: Session, edit: ReportUsage) -> Session:
    """A report without its message counts for the newest response, or for the one it names."""
    usage = normalise_usage(edit.usage)
    if usage is None:
        return session
    family, after, chunks = session.family, EMPTY, EMPTY
    for message in reversed(session.view):
        tally = tally_message(message, family)
        after = after + tally
        if message.role == "assistant":
            chunks = chunks + tally
        if message.id == edit.message_id or (
            edit.message_id is None and message.role == "assistant"
        ):
            response = message.api_message_id
            return _anchored(session, Anchor(usage, session.sent - after, chunks, response))
    return _anchored(session, Anchor(usage, session.sent, EMPTY, None))


def _anchored(session: Session, anchor: Anchor) -> Session:
    anchor = replace(anchor, tools=session.tools_tally.total, revision=session.revision)
    overhead = _overhead(session.overhead, anchor, session.calibration.factor)
    unread = _unread(session.anchor, anchor)
    growth = _grown(session.growth, anchor)
    return replace(session, anchor=anchor, overhead=overhead, unread_tokens=unread, growth=growth)


def _mended(session: Session, sequence: int, edit: Mend) -> Session:
    """A range near the end of the view exchanged; costs what the range costs."""
    places = session.ledger.places
    start = position(session.view, edit.first, places)
    end = position(session.view, edit.last, places)
    if start is None or end is None:
        return session
    old, family = session.view[start : end + 1], session.family
    tally = session.tally - tally_messages(old, family) + tally_messages(edit.messages, family)
    view = apply(session.view, edit, session.ledger.places)
    open_calls = _open_callers(view)
    named = {**session.aliases, **{old: new for new, old in edit.renamed.items()}}
    return replace(
        session,
        view=view,
        ledger=session.ledger.exchanged(session.view, view, family),
        tally=tally,
        anchor=_rebased(session.anchor, view, tally + session.unreached, family),
        media=session.media - _media(old, family) + _media(edit.messages, family),
        open_calls=open_calls,
        aliases=MappingProxyType({old: new for old, new in named.items() if new in open_calls}),
        made_up=session.made_up.union(edit.made_up),
        revision=sequence,
    )


def _joined_ids(message: Message) -> tuple[str, ...]:
    """Ids of the messages that a repair has joined to this one."""
    return tuple((message.model_extra or {}).get("merged_ids", ()))


def _rebased(anchor: Anchor | None, view: Messages, tally: Tally, family: str) -> Anchor | None:
    """The anchor of the same report, where the messages that it covers read otherwise now."""
    if anchor is None or anchor.last is None:
        return anchor
    after = EMPTY
    for message in reversed(view):
        if message.id == anchor.last or anchor.last in _joined_ids(message):
            return replace(anchor, before=tally - after - anchor.chunks)
        after = after + tally_message(message, family)
    return anchor


def _cleared(session: Session, sequence: int, edit: Replace) -> Session:
    """A replacement; what it clears waits no longer, and no host is to clear it either."""
    gone = {change.tool_use_id for change in edit.changes}
    waiting = tuple(
        (number, queue)
        for number, queue in session.queued
        if not gone.issuperset(queue.tool_use_ids)
    )
    delegated = () if edit.stage == "microcompact" else session.delegated
    return replace(_edited(session, sequence, edit), queued=waiting, delegated=delegated)


def _edited(session: Session, sequence: int, edit: _ViewEdit) -> Session:
    change = (
        _in_place(session, edit)
        if isinstance(edit, Replace | DropThinking)
        else _moved(session, edit)
    )
    if change is None:
        return session
    tally, media = _counted(session, change)
    return replace(
        session,
        view=change.view,
        ledger=change.ledger,
        tally=tally,
        media=media,
        largest=_largest_after(session, edit, change),
        open_calls=_open_callers(change.view),
        edits=(*session.edits, (sequence, edit)),
        revision=sequence,
    )


@dataclass(frozen=True, slots=True)
class _Change:
    """A view and its ledger after an edit, and which messages left it and came into it."""

    view: Messages
    ledger: Ledger
    gone: Sequence[Message]
    came: Sequence[Message]


def _in_place(session: Session, edit: Replace | DropThinking) -> _Change | None:
    """The change of an edit that leaves each message where it is; only what it names is read."""
    old = session.view
    fresh = exchanged(old, edit, session.ledger.places)
    if not fresh:
        return None
    view = with_exchanged(old, fresh)
    ledger = session.ledger.exchanged_at(fresh, view, session.family)
    return _Change(view, ledger, [old[place] for place in fresh], list(fresh.values()))


def _moved(session: Session, edit: Edit) -> _Change | None:
    """The change of an edit that exchanges a range; messages that stay are the same objects."""
    before, after = session.view, apply(session.view, edit, session.ledger.places)
    if after is before:
        return None
    kept, had = set(map(id, after)), set(map(id, before))
    gone = [message for message in before if id(message) not in kept]
    came = [message for message in after if id(message) not in had]
    return _Change(after, session.ledger.exchanged(before, after, session.family), gone, came)


def _compacted(session: Session, sequence: int, edit: Compact) -> Session:
    edited = _discovered(_edited(session, sequence, edit), edit.discovered_tools)
    return replace(
        edited,
        anchor=None,
        boundary=edit,
        boundaries=session.boundaries + 1,
        previous=(session.view, *session.previous)[:PREVIOUS_VIEWS],
        staged=(),
        delegated=(),
        breaker=_after_compaction(session, edit),
        growth=session.growth.compacted(edit.trigger),
    )


def _counted(session: Session, change: _Change) -> tuple[Tally, Media]:
    """The tally and the media after an exchange, by what left the view and what came."""
    family, gone, came = session.family, change.gone, change.came
    lost, added = tally_messages(gone, family), tally_messages(came, family)
    is_most = len(gone) + len(came) >= len(change.view)
    tally = tally_messages(change.view, family) if is_most else session.tally - lost + added
    media = session.media
    if lost.image or lost.document:
        media = media - _media(gone, family)
    if added.image or added.document:
        media = media + _media(came, family)
    return tally, media


def _largest_after(session: Session, edit: Edit, change: _Change) -> tuple[Contributor, ...]:
    """The largest results after an edit; where it only made others smaller, they are the same."""
    if isinstance(edit, DropThinking):
        return session.largest
    if isinstance(edit, Replace):
        changed = {message.id for message in change.gone}
        if not any(each.message_id in changed for each in session.largest):
            return session.largest
    return largest_results(session, change.view, change.ledger)


def _after_compaction(session: Session, edit: Compact) -> Breaker:
    """A success closes the breaker; an automatic one that freed too little is a failure."""
    if edit.trigger != "auto":
        return Breaker()
    least = edit.tokens_before * session.policy.least_gain_fraction
    freed = edit.tokens_before - edit.tokens_after
    if freed < least:
        reason = f"no_gain: it freed {freed:,} of {edit.tokens_before:,} tokens"
    elif not edit.leaves_room:
        reason = f"no_room: {edit.tokens_after:,} tokens were left in use"
    else:
        return Breaker()
    return session.breaker.failed(edit.at, reason, used_tokens=edit.tokens_after)


# ── tools ────────────────────────────────────────────────────────────────────


def _registered(session: Session, edit: RegisterTools, batches: Batches) -> Session:
    """The session with more tools; none counts twice that a report had shown already."""
    after = replace(session, tools=with_batch(session.tools, edit, batches, terms_of(session)))
    anchor, overhead = session.anchor, session.overhead
    if overhead is None:
        return after
    hidden = overhead.tokens / session.calibration.factor - session.system_tally.total
    now = after.tools_tally.total

    def covered(before: float) -> float:
        return max(before, min(now, hidden))

    return replace(
        after,
        anchor=replace(anchor, tools=covered(anchor.tools)) if anchor else None,
        overhead=replace(overhead, tools=covered(overhead.tools)),
    )


def _discovered(session: Session, names: Iterable[str]) -> Session:
    if session.tools is None:
        return session
    return replace(session, tools=with_discovered(session.tools, names))


def _retooled(session: Session) -> Session:
    """The session whose window or model may have changed: deferral is decided anew."""
    if session.tools is None:
        return session
    return replace(session, tools=with_terms(session.tools, terms_of(session)))


def terms_of(session: Session) -> Terms:
    """What decides which of a session's tools are deferred."""
    tokens = session_window(session).context_window
    return Terms(session.family, tokens, session.policy, session.search_mode)


def _media(messages: Iterable[Message], family: str) -> Media:
    return sum((media_of(m) for m in messages if has_media(m, family)), Media())


def _open_callers(view: Messages) -> Mapping[str, Caller]:
    """The calls of the last response that nothing has answered, by id."""
    answered: set[str] = set()
    found: dict[str, Caller] = {}
    for message in reversed(view):
        if message.role == "user" and found:
            break
        answered.update(message.results)
        callers = _callers(message).items()
        found.update({id: caller for id, caller in callers if id not in answered})
        if message.role == "assistant" and message.calls and not found:
            break
    return MappingProxyType(found)
