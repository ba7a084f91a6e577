"""What is particular to the PostgreSQL store: its connections, and what becomes of them."""

import anyio
import psycopg
import pytest
from click.testing import CliRunner
from conversations import conversation, user

from mcp_context_server.cli import main
from mcp_context_server.errors import InvalidInput, StoreUnavailable, VersionConflict
from mcp_context_server.ports import SessionRecord
from mcp_context_server.server import open_store
from mcp_context_server.stores.postgres_schema import MIGRATIONS
from mcp_context_server.stores.urls import shown

pytestmark = [pytest.mark.anyio, pytest.mark.requirement("STORE-1")]


@pytest.fixture
def url(postgres):
    return postgres.new_database()


@pytest.fixture
async def store(url):
    store = open_store(url)
    await store.create(SessionRecord(session_id="s"))
    yield store
    await store.aclose()


async def test_replicas_that_start_together_make_the_tables_once(url):
    stores = [open_store(url) for _ in range(8)]
    async with anyio.create_task_group() as tasks:
        for n, store in enumerate(stores):
            tasks.start_soon(store.create, SessionRecord(session_id=f"s{n}"))
    assert len(await stores[0].holdings()) == 8
    for store in stores:
        await store.aclose()
    with psycopg.connect(url) as db:
        assert db.execute("SELECT version FROM mcp_context.schema_version").fetchall() == [
            (len(MIGRATIONS),)
        ]


async def test_tables_of_a_newer_version_are_refused(url, store):
    with psycopg.connect(url) as db:
        db.execute("UPDATE mcp_context.schema_version SET version = version + 1")
    with pytest.raises(StoreUnavailable, match="newer version"):
        await open_store(url).holdings()


async def test_lost_connections_are_made_again(store, postgres):
    for version in range(5):
        postgres.kill_backends()
        await store.append("s", [user("hi", id=f"x{version}")], version=version)
    assert (await store.read("s")).version == 5


async def test_a_server_that_restarts_is_waited_for(store, postgres):
    await store.append("s", conversation("u:hi"), version=0)
    await anyio.to_thread.run_sync(postgres.stop)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(anyio.to_thread.run_sync, postgres.start)
        assert await store.append("s", [user("again", id="x")], version=1) == 2
    assert (await store.read("s")).version == 2


async def test_a_server_that_is_away_is_an_error_that_tells_no_password(postgres, url):
    away = url.replace("postgres@", "postgres:dolphin@").replace(str(postgres.home), "/nowhere")
    store = open_store(away, patience_seconds=0)
    with pytest.raises(StoreUnavailable, match="can't be used") as caught:
        await store.read("s")
    assert "dolphin" not in str(caught.value)
    await store.aclose()


def test_the_doctor_tells_of_a_database(url, postgres):
    def doctor(url: str):
        return CliRunner().invoke(main, ["doctor", "--store", url], env={"COLUMNS": "2000"})

    assert "0 sessions" in doctor(url).output
    broken = doctor(url.replace(str(postgres.home), "/nowhere").replace("es@", "es:dolphin@"))
    assert (broken.exit_code, "broken" in broken.output) == (1, True)
    assert "dolphin" not in broken.output
    missing = doctor(postgres.url("missing"))
    assert "does not exist" in missing.output


async def test_a_database_that_does_not_exist_is_told_at_once(postgres):
    store = open_store(postgres.url("missing"), patience_seconds=60)
    with anyio.fail_after(10), pytest.raises(StoreUnavailable, match="does not exist"):
        await store.holdings()


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("postgresql://me:dolphin@db:5432/x?sslmode=require", "postgresql://me@db:5432/x"),
        ("postgres://db/x", "postgresql://db/x"),
        ("postgresql:///x?host=/a&password=dolphin", "postgresql:///x"),
        ("sqlite:///a.db", "sqlite:///a.db"),
    ],
)
def test_a_url_is_shown_without_its_password(url, told):
    assert shown(url) == told


# ── an answer that is lost ───────────────────────────────────────────────────


class Wire:
    """Stands between the store and its server; `cut` loses the next answer on the way back."""

    def __init__(self, socket: str) -> None:
        self.socket, self.cut = socket, False

    async def __call__(self, client) -> None:
        async with (
            client,
            await anyio.connect_unix(self.socket) as server,
            anyio.create_task_group() as tasks,
        ):
            tasks.start_soon(self._carry, client, server, tasks.cancel_scope, False)
            await self._carry(server, client, tasks.cancel_scope, True)

    async def _carry(self, source, target, scope, is_answer) -> None:
        try:
            while True:
                data = await source.receive()
                if is_answer and self.cut:
                    self.cut = False
                    break
                await target.send(data)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        scope.cancel()


async def test_an_append_whose_answer_is_lost_is_applied_once(url, postgres):
    wire = Wire(f"{postgres.home}/.s.PGSQL.5432")
    listener = await anyio.create_tcp_listener(local_host="127.0.0.1", local_port=0)
    port = listener.extra(anyio.abc.SocketAttribute.local_port)
    database = url.split("/")[3].split("?")[0]
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, wire)
        store = open_store(f"postgresql://postgres@127.0.0.1:{port}/{database}?sslmode=disable")
        await store.create(SessionRecord(session_id="s"))
        for version in range(5):
            wire.cut = True
            after = await store.append("s", [user("hi", id=f"x{version}")], version=version)
            assert (after, wire.cut) == (version + 1, False)
        wire.cut = True
        with pytest.raises(VersionConflict):
            await store.append("s", [user("late", id="late")], version=0)
        assert (await store.read("s")).version == 5
        wire.cut = True
        await store.delete("s")
        await store.aclose()
        tasks.cancel_scope.cancel()
    await listener.aclose()


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mcp_context_server.stores.postgres", None)
    with pytest.raises(InvalidInput, match=r"mcp-context-server\[postgres\]"):
        open_store("postgresql://db/x")
