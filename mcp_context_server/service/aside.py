"""Work of the core that takes long, done in a thread: others are answered meanwhile.

The core is pure and its values are frozen, so a thread can't get in anyone's way. A caller
that gives up waits for the thread to end, and what it found out is dropped.
"""

from collections.abc import Callable
from functools import partial
from typing import TypeVar, TypeVarTuple

import anyio.to_thread

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

MANY_MESSAGES = 200
"""From so many messages on, others would notice what is done with them: some 20 ms."""


async def aside(messages: int, work: Callable[[*Ts], T], *arguments: *Ts) -> T:
    """What `work` makes of its arguments, which hold so many messages."""
    if messages < MANY_MESSAGES:
        return work(*arguments)
    return await anyio.to_thread.run_sync(partial(work, *arguments))
