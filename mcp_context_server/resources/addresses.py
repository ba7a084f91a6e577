"""The addresses of what a session holds, as resources."""

from collections.abc import Iterable
from urllib.parse import quote, unquote

from mcp_context_server.core.aspects import Aspect
from mcp_context_server.service.changes import Change

SESSIONS_URI = "context://sessions"


def uri_of(session_id: str, aspect: Aspect) -> str:
    """The address of one side of a session; of `sessions`, that of the list."""
    if aspect == "sessions":
        return SESSIONS_URI
    return f"{SESSIONS_URI}/{quote(session_id, safe='')}/{aspect}"


def uris_of(change: Change) -> Iterable[str]:
    """The addresses at which a change is to be read, in a fixed order."""
    return [uri_of(change.session_id, aspect) for aspect in sorted(change.aspects)]


def session_in(uri: str) -> str:
    """The session that an address is about; empty for the list, and for what is not ours."""
    prefix = f"{SESSIONS_URI}/"
    path, _, _ = uri.partition("?")
    return unquote(path.removeprefix(prefix).partition("/")[0]) if path.startswith(prefix) else ""


def canonical(uri: str) -> str:
    """The address as we write it: of the whole rather than of a page, and encoded in one way."""
    path, _, _ = uri.partition("?")
    if not path.startswith(f"{SESSIONS_URI}/"):
        return path if path == SESSIONS_URI else uri
    session_id, _, rest = path.removeprefix(f"{SESSIONS_URI}/").partition("/")
    return f"{SESSIONS_URI}/{quote(unquote(session_id), safe='')}/{rest}"


class Addresses:
    """The resources that somebody asked to be told of, in whatever way they wrote them."""

    def __init__(self, uris: Iterable[str] = ()) -> None:
        self._given: dict[str, set[str]] = {}
        for uri in uris:
            self.add(uri)

    def add(self, uri: str) -> None:
        self._given.setdefault(canonical(uri), set()).add(uri)

    def discard(self, uri: str) -> None:
        place = canonical(uri)
        given = self._given.get(place, set())
        given.discard(uri)
        if not given:
            self._given.pop(place, None)

    def __contains__(self, uri: str) -> bool:
        return uri in self._given.get(canonical(uri), ())

    def __len__(self) -> int:
        return sum(map(len, self._given.values()))

    @property
    def session_ids(self) -> set[str]:
        """The sessions that they are about."""
        return set(filter(None, map(session_in, self._given)))

    def of(self, change: Change) -> list[str]:
        """Those that read otherwise after a change, as they were given."""
        return [uri for place in uris_of(change) for uri in sorted(self._given.get(place, ()))]
