"""Two server processes on one PostgreSQL database serve one session.

    python -m examples.two_replicas postgresql://USER@HOST/DATABASE

As behind a load balancer, each call may reach another process. The database keeps what was
appended before it is acknowledged; an append that rests on an old version is refused, and
the caller looks again. The tables are made on first use, in a schema of their own.
"""

import sys
from typing import Any

import anyio

from examples.connecting import context_server


async def main(url: str) -> list[dict[str, Any]]:
    """One conversation, its calls going to either process in turn; what both know at the end."""
    async with context_server(url) as one, context_server(url) as other:
        session = (await one("session_open", model="claude-sonnet-5"))["session_id"]
        version = 0
        for number in range(6):
            ask = (one, other)[number % 2]
            message = {"role": ("user", "assistant")[number % 2], "content": f"message {number}"}
            appended = await ask("append_messages", session_id=session, messages=[message])
            version = appended["version"]

        stale = {"messages": [{"role": "user", "content": "too late"}], "expected_version": 1}
        try:
            await one("append_messages", session_id=session, **stale)
        except RuntimeError as refused:
            print(f"at version {version}: {refused}")

        await one("session_memory_update", session_id=session, section="Learnings", content="Both.")
        memory = await other("session_memory_read", session_id=session, section="Learnings")
        print(memory["markdown"])
        return [await ask("context_status", session_id=session) for ask in (one, other)]


if __name__ == "__main__":
    for status in anyio.run(main, sys.argv[1]):
        print(f"{status['messages']} messages, {status['used_tokens']} tokens")
