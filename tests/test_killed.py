"""A server killed at any moment comes back with everything that it acknowledged."""

import random
import threading

import pytest
from stdio import StdioServer

KILLS = 50


def append_until_killed(
    server: StdioServer, session_id: str, first: int, after_seconds: float
) -> list[int]:
    """Numbers of the messages whose append was acknowledged before the server died.

    It is killed that long after it acknowledged the first of them.
    """
    acknowledged = []
    killer = threading.Timer(after_seconds, server.process.kill)
    try:
        for number in range(first, first + 100_000):
            message = {"role": "user", "content": f"message {number} " + "x" * (number % 3000)}
            server.call("append_messages", session_id=session_id, messages=[message])
            acknowledged.append(number)
            if len(acknowledged) == 1:
                killer.start()
    except (EOFError, BrokenPipeError):
        killer.join()
        return acknowledged
    raise AssertionError


@pytest.mark.requirement("STORE-1")
def test_no_acknowledged_append_is_lost_over_fifty_kills(tmp_path):
    store, rng = f"sqlite:///{tmp_path}/s.db", random.Random(7)
    with StdioServer("serve", "--store", store) as server:
        session_id = server.call("session_open")["session_id"]
    acknowledged = [0]
    for _ in range(KILLS):
        server = StdioServer("serve", "--store", store)
        last = acknowledged[-1]
        acknowledged += append_until_killed(server, session_id, last + 1, rng.uniform(0.0, 0.1))
        server.kill()
    with StdioServer("serve", "--store", store) as server:
        status = server.call("context_status", session_id=session_id)
        kept = [_content(server, session_id, n) for n in range(1, status["messages"] + 1)]
    numbers = [int(content.split()[1]) for content in kept]
    assert set(numbers) >= set(acknowledged[1:])
    assert len(acknowledged) > KILLS
    # An append that was killed before its answer may be there or not, but never in part.
    assert all(
        content == f"message {n} " + "x" * (n % 3000)
        for n, content in zip(numbers, kept, strict=True)
    )


def _content(server: StdioServer, session_id: str, place: int) -> str:
    found = server.call("recall", session_id=session_id, message_id=f"m{place}", max_tokens=10_000)
    return found["content"]


@pytest.mark.requirement("STORE-1")
def test_several_servers_on_one_file_append_to_one_session_without_losing_any(tmp_path):
    store = f"sqlite:///{tmp_path}/s.db"
    servers = [StdioServer("serve", "--store", store) for _ in range(3)]
    session_id = servers[0].call("session_open")["session_id"]

    def append(server: StdioServer, name: str) -> None:
        for number in range(20):
            message = {"role": "user", "content": "hi", "id": f"{name}{number}"}
            server.call("append_messages", session_id=session_id, messages=[message])

    threads = [
        threading.Thread(target=append, args=(s, n)) for s, n in zip(servers, "abc", strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    statuses = [server.call("context_status", session_id=session_id) for server in servers]
    assert [status["messages"] for status in statuses] == [60, 60, 60]
    for server in servers:
        assert server.close() == 0
