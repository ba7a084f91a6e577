"""Registering this server in a host's files, and taking it out again."""

import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, cast

from mcp_context_server.errors import HostFileUnusable, InvalidInput
from mcp_context_server.hosts import claude_settings, jsonc
from mcp_context_server.hosts.files import (
    BACKUP_SUFFIX,
    Change,
    Receipt,
    Receipts,
    back_up,
    bytes_of,
    digest,
    text_of,
    write,
)
from mcp_context_server.hosts.registry import (
    SERVER_NAME,
    Command,
    Entry,
    Host,
    Machine,
    Scope,
    Syntax,
    is_ours,
)

State = Literal["registered", "not registered", "unreadable"]


@dataclass(frozen=True, slots=True)
class Standing:
    """Whether a host is there, and whether this server is registered in one of its files."""

    host: Host
    scope: Scope
    path: Path
    is_found: bool
    state: State
    fault: str = ""


def standings(hosts: Iterator[Host], machine: Machine) -> Iterator[Standing]:
    """Every file of these hosts; one that can't be read is told as such."""
    for host in hosts:
        for scope in host.files:
            path, found = host.file(scope, machine), host.is_found(machine)
            try:
                state: State = "registered" if _has_ours(host, scope, machine) else "not registered"
                yield Standing(host, scope, path, found, state)
            except HostFileUnusable as error:
                yield Standing(host, scope, path, found, "unreadable", str(error))


def snippet(host: Host, command: Command) -> str:
    """What a registration adds to an empty file."""
    return _with_server("", host, SERVER_NAME, command, replace_other=True)


def installation(
    host: Host,
    scope: Scope,
    machine: Machine,
    command: Command,
    *,
    name: str = SERVER_NAME,
    replace_other: bool = False,
) -> tuple[Change, ...]:
    """What registering changes. Raises `HostFileUnusable`, `InvalidInput`; writes nothing."""
    path = host.file(scope, machine)

    def with_server(text: str) -> tuple[str, tuple[str, ...]]:
        return _with_server(text, host, name, command, replace_other=replace_other), ()

    changes = [_change(path, host.syntax, with_server)]
    if host.settings is not None:

        def with_settings(text: str) -> tuple[str, tuple[str, ...]]:
            return claude_settings.installed(text or "{}", command, replace=replace_other)

        changes.append(_change(host.settings[scope](machine), "json", with_settings))
    return tuple(changes)


def removal(host: Host, scope: Scope, machine: Machine, receipts: Receipts) -> tuple[Change, ...]:
    """What taking the registration out changes. Raises `HostFileUnusable`; writes nothing."""

    def without_server(text: str) -> str:
        return _without_server(text, host)

    edits: list[tuple[Path, Syntax, str, Callable[[str], str]]] = [
        (host.file(scope, machine), host.syntax, host.key, without_server)
    ]
    if host.settings is not None:
        path = host.settings[scope](machine)
        before = (receipts.backup(path) or b"").decode()
        without_ours = partial(claude_settings.uninstalled, before=before)
        edits.append((path, "json", "hooks", without_ours))
    changes = (
        _restored(path, receipts) or _taken_out(path, syntax, key, edit, receipts)
        for path, syntax, key, edit in edits
    )
    return tuple(change for change in changes if change.before is not None)


def apply(changes: tuple[Change, ...], receipts: Receipts, *, is_removal: bool = False) -> None:
    """Write the changes, with backups and receipts. Raises `HostFileUnusable`."""
    needed = [change for change in changes if change.is_needed]
    kept = dict[Path, Receipt]()
    for change in [] if is_removal else needed:
        assert change.after is not None
        is_our_state, original = receipts.original(change.path, change.before)
        start = replace(change, before=original) if is_our_state else change
        back_up(start)
        before = None if start.before is None else digest(start.before)
        kept[change.path] = Receipt(digest(change.after), before)
    write(needed)
    for change in needed:
        receipts.keep(change.path, kept.get(change.path))
        if is_removal:
            _drop_backup(change)


def _drop_backup(change: Change) -> None:
    """A backup has done its work when the file is again what it keeps."""
    backup = change.path.with_name(change.path.name + BACKUP_SUFFIX)
    if bytes_of(backup) == change.after:
        backup.unlink(missing_ok=True)


def _taken_out(
    path: Path, syntax: Syntax, key: str, edit: Callable[[str], str], receipts: Receipts
) -> Change:
    """The file without ours, where something else in it changed; no object that we made stays."""
    original = receipts.backup(path)
    is_known = original is not None or receipts.is_made(path)

    def without(text: str) -> tuple[str, tuple[str, ...]]:
        held = _read((original or b"").decode(), syntax) if is_known else {key: None}
        if not text:
            return text, ()
        text = edit(text)
        if syntax != "toml" and key not in held and _read(text, syntax).get(key) == {}:
            text = jsonc.remove(text, (key,), comments=syntax == "jsonc")
        return text, ()

    change = _change(path, syntax, without)
    is_empty = change.after is not None and change.after.split() in ([], [b"{}"])
    return replace(change, after=None) if is_empty and receipts.is_made(path) else change


def _restored(path: Path, receipts: Receipts) -> Change | None:
    """The file as it was before us, if it is still as we left it."""
    now = bytes_of(path)
    is_ours_still, original = receipts.original(path, now)
    return Change(path, now, original) if is_ours_still else None


# ── one file ─────────────────────────────────────────────────────────────────

Editing = Callable[[str], tuple[str, tuple[str, ...]]]


def _change(path: Path, syntax: Syntax, edit: Editing) -> Change:
    """A file's change by an edit of its text, which must leave something its host can read."""
    before = text_of(path)
    try:
        _read(before or "", syntax)
        after, notes = edit(before or "")
        _read(after, syntax)
    except ValueError as error:
        raise HostFileUnusable(path, str(error)) from error
    if before is None and not after.strip():
        return Change(path, None, None, notes)
    return Change(path, None if before is None else before.encode(), after.encode(), notes)


_BLANK = "\ufeff \t\r\n"


def _read(text: str, syntax: Syntax) -> dict[str, Any]:
    if syntax == "toml":
        return tomllib.loads(text)
    value: object = jsonc.read(text, comments=syntax == "jsonc") if text.strip(_BLANK) else {}
    if not isinstance(value, dict):
        message = "it holds no JSON object"
        raise jsonc.Malformed(message)
    return cast("dict[str, Any]", value)


def _servers(text: str, host: Host) -> dict[str, Any]:
    servers = _read(text, host.syntax).get(host.key, {})
    if not isinstance(servers, dict):
        message = f"{host.key} is not what it should be: the servers by name"
        raise jsonc.Malformed(message)
    return cast("dict[str, Any]", servers)


def _has_ours(host: Host, scope: Scope, machine: Machine) -> bool:
    path = host.file(scope, machine)
    try:
        return any(map(is_ours, _servers(text_of(path) or "", host).values()))
    except ValueError as error:
        raise HostFileUnusable(path, str(error)) from error


def _with_server(text: str, host: Host, name: str, command: Command, *, replace_other: bool) -> str:
    servers = _servers(text, host)
    if name == SERVER_NAME:
        name = next((n for n, entry in servers.items() if is_ours(entry)), name)
    known = servers.get(name)
    if known is not None and not is_ours(known) and not replace_other:
        message = (
            f"{host.title} has another server named {name!r}. Give --name for a name of your own, "
            "or --replace to put this one in its place."
        )
        raise InvalidInput(message)
    entry = host.entry(command)
    if known is not None and is_ours(known):
        entry = {**known, **entry, "args": _arguments(known, command)}
    if entry == known:
        return text
    if host.syntax == "toml":
        after = _toml_with(text, host.key, name, entry)
    else:
        empty = "{}\n" if not text.strip(_BLANK) else text
        after = jsonc.put(empty, (host.key, name), entry, comments=host.syntax == "jsonc")
    return _checked(after, text, host, {**servers, name: entry})


def _arguments(known: Entry, command: Command) -> list[Any]:
    """The arguments of a registered entry: a person's own options after `serve` stay."""
    given = cast("list[Any]", known.get("args") or [])
    own = given[given.index("serve") :] if "serve" in given else []
    return [*command.arguments, *own]


def _without_server(text: str, host: Host) -> str:
    servers = _servers(text, host)
    after, left = text, {name: e for name, e in servers.items() if not is_ours(e)}
    for name in servers.keys() - left.keys():
        if host.syntax == "toml":
            after = _toml_without(after, host.key, name)
        else:
            after = jsonc.remove(after, (host.key, name), comments=host.syntax == "jsonc")
    return _checked(after, text, host, left)


def _toml_with(text: str, key: str, name: str, entry: Entry) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    if key not in document:
        document.add(key, tomlkit.table(is_super_table=True))
    cast("dict[str, Any]", document[key])[name] = entry
    return tomlkit.dumps(document)


def _toml_without(text: str, key: str, name: str) -> str:
    import tomlkit

    document = tomlkit.parse(text)
    del cast("dict[str, Any]", document[key])[name]
    return tomlkit.dumps(document)


def _checked(after: str, before: str, host: Host, servers: dict[str, Any]) -> str:
    """The edited text, once it is certain to say all that it said, and the change."""
    told: dict[str, Any] = {host.key: {}, **_read(after, host.syntax)}
    if told != {**_read(before, host.syntax), host.key: servers}:
        message = f"{host.key} can't be edited in the way this file is written"
        raise jsonc.Malformed(message)
    return after
