"""The URLs that name a store."""

from pathlib import Path
from urllib.parse import unquote, urlsplit


def sqlite_path(url: str) -> Path | None:
    """The file that a `sqlite:///PATH` URL names."""
    parts = urlsplit(url)
    if parts.scheme != "sqlite" or parts.netloc or len(parts.path) < 2:
        return None
    return Path(unquote(parts.path[1:]))


def is_postgres(url: str) -> bool:
    return urlsplit(url).scheme in ("postgresql", "postgres")


def shown(url: str) -> str:
    """A URL as it may be shown: a database's without its password and its options."""
    if not is_postgres(url):
        return url
    parts = urlsplit(url)
    where = parts.netloc.rpartition("@")[2]
    user = f"{parts.username}@" if parts.username else ""
    return f"postgresql://{user}{where}{parts.path}"
