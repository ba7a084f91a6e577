"""Opens files that others name: regular ones only, so that no pipe or device is waited for."""

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

NOT_REGULAR = "it is a pipe, a device or a socket, and only regular files are read"

_AT_ONCE = getattr(os, "O_NONBLOCK", 0)


def open_regular(path: Path, *, follows_links: bool = True) -> BinaryIO:
    """A regular file, opened to read bytes. Never waits for a writer.

    Raises `OSError`, for what is not a regular file too: looked at before it is opened,
    since opening some devices does something, and after, since another may have come there.
    """
    flags = _AT_ONCE | (0 if follows_links else getattr(os, "O_NOFOLLOW", 0))
    _check(path, os.stat(path, follow_symlinks=follows_links).st_mode)

    def opened(name: str, mode: int) -> int:
        file = os.open(name, mode | flags)
        try:
            _check(path, os.fstat(file).st_mode)
        except OSError:
            os.close(file)
            raise
        return file

    return open(path, "rb", opener=opened)


def _check(path: Path, mode: int) -> None:
    """A directory and a link are left to `open`, which tells of them in the system's words."""
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or stat.S_ISLNK(mode)):
        raise OSError(errno.EINVAL, NOT_REGULAR, str(path))
