"""Agents append through replicas while replicas are killed and the database falls over."""

import random
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

import anyio
from postgres import Cluster
from stdio import StdioServer

from mcp_context_server.core.messages import Message, message_text
from mcp_context_server.core.rules import validate
from mcp_context_server.server import build_service, open_store
from mcp_context_server.settings import Settings

SESSION = "shared"


@dataclass
class Agent:
    """Appends to one session through a replica of its own, again where one dies under it."""

    name: str
    url: str
    acknowledged: list[int] = field(default_factory=list)
    repeated: int = 0
    server: StdioServer | None = None

    def append(self, count: int, told: threading.Semaphore) -> None:
        for _ in range(count):
            self._append_one(len(self.acknowledged) + 1)
            self.acknowledged.append(len(self.acknowledged) + 1)
            told.release()

    def _append_one(self, number: int) -> None:
        """Append until it is acknowledged, always with the same key."""
        given = {
            "session_id": SESSION,
            "messages": self._messages(number),
            "idempotency_key": f"{self.name}{number}",
        }
        while not self._is_done("append_messages", given):
            self.repeated += 1

    def _is_done(self, tool: str, arguments: dict) -> bool:
        try:
            self.server = self.server or StdioServer("serve", "--store", self.url)
            params = {"name": tool, "arguments": arguments}
            return not self.server.request("tools/call", params).get("isError")
        except (EOFError, BrokenPipeError):
            self.end()
            return False

    def _messages(self, number: int) -> list[dict]:
        text = f"{self.name} {number} " + "x" * (97 * number % 3000)
        if number % 3:
            return [{"role": "user", "content": text}]
        call = {"type": "tool_use", "id": f"{self.name}-{number}", "name": "look", "input": {}}
        result = {"type": "tool_result", "tool_use_id": call["id"], "content": "seen"}
        said = [{"type": "text", "text": text}, call]
        return [{"role": "assistant", "content": said}, {"role": "user", "content": [result]}]

    def kill(self) -> None:
        """Kill its replica, if it has one just now; the agent notices by itself."""
        server = self.server
        if server is not None:
            server.process.kill()

    def end(self) -> None:
        """Kill its replica, and let go of it."""
        server, self.server = self.server, None
        if server is not None:
            server.kill()


def faults(cluster: Cluster, agents: list[Agent]) -> dict[str, Callable[[], None]]:
    """What can happen in a round, by name."""

    def restart() -> None:
        cluster.stop()
        cluster.start()

    def everything() -> None:
        for agent in agents:
            agent.kill()
        restart()

    return {
        "a replica is killed": agents[0].kill,
        "another replica is killed": agents[-1].kill,
        "the database is killed": restart,
        "connections are cut": cluster.kill_backends,
        "everything is killed": everything,
    }


@dataclass(frozen=True)
class Report:
    """What came of the rounds."""

    faults: Counter[str]
    acknowledged: int
    repeated: int
    lost: int
    doubled: int
    invalid: int


def play(cluster: Cluster, *, rounds: int, agents: int = 2, appends: int = 6, seed: int = 1):
    """Rounds of appends with one fault each, at a moment that chance chooses."""
    rng, url, seen = random.Random(seed), cluster.new_database(), Counter[str]()
    crew = [Agent(chr(ord("a") + n), url) for n in range(agents)]
    assert crew[0]._is_done("session_open", {"session_id": SESSION})
    happenings = faults(cluster, crew)
    for number in range(rounds):
        told = threading.Semaphore(0)
        threads = [threading.Thread(target=a.append, args=(appends, told)) for a in crew]
        for thread in threads:
            thread.start()
        for _ in range(rng.randrange(agents * appends)):
            told.acquire()
        name = list(happenings)[number % len(happenings)]
        happenings[name]()
        seen[name] += 1
        for thread in threads:
            thread.join()
    for agent in crew:
        agent.end()
    return anyio.run(_judged, url, crew, seen)


async def _judged(url: str, crew: list[Agent], seen: Counter[str]) -> Report:
    store = open_store(url)
    try:
        entries = [entry for _, entry in (await store.read(SESSION)).entries]
        live = await build_service(Settings(), store).load(SESSION, "")
    finally:
        await store.aclose()
    written = Counter(
        tuple(message_text(entry).split()[:2])
        for entry in entries
        if isinstance(entry, Message) and message_text(entry)
    )
    promised = [(agent.name, str(number)) for agent in crew for number in agent.acknowledged]
    return Report(
        faults=seen,
        acknowledged=len(promised),
        repeated=sum(agent.repeated for agent in crew),
        lost=sum(each not in written for each in promised),
        doubled=sum(times > 1 for times in written.values()),
        invalid=len(validate([message.wire() for message in live.session.view])),
    )
