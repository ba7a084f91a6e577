"""A first session: an hour of work goes in, is compacted, and is found again.

    python -m examples.first_session

These are calls of the program around a model; the conversation is the one of `demo`.
"""

import anyio

from examples.connecting import context_server
from mcp_context_server.demo import recording


async def main() -> None:
    async with context_server() as ask:
        await ask("session_open", model="claude-sonnet-4-5", context_window=72_000)
        messages = [message.model_dump(exclude_unset=True) for message in recording()]
        await ask("append_messages", messages=messages)

        status = await ask("context_status")
        print(f"{len(messages)} messages: {status['percent_used']} % of the window is used")
        print(status["advice"])

        done = await ask("compact", instructions="Keep the ground rules of the repository.")
        print(f"compacted: {done['tokens_before']:,} → {done['tokens_after']:,} tokens")

        found = await ask("recall", query="no new dependencies")
        original = await ask("recall", reference=found["hits"][0]["reference"])
        print("recalled:", original["content"].splitlines()[-2])


if __name__ == "__main__":
    anyio.run(main)
