"""What is particular to the PostgreSQL store: its connections, and what becomes of them."""

import json
import socket
import socketserver
import threading
from contextlib import suppress

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


@pytest.mark.requirement("STORE-4")
async def test_definitions_of_older_tables_stay_as_long_as_a_session_names_them(url):
    with psycopg.connect(url, autocommit=True) as db:
        db.execute("CREATE SCHEMA mcp_context")
        db.execute("SET search_path TO mcp_context, public")
        db.execute("CREATE TABLE schema_version (version integer NOT NULL)")
        db.execute("INSERT INTO schema_version VALUES (1)")
        db.execute(MIGRATIONS[0])
        db.execute("INSERT INTO catalogs VALUES ('used', '[]'), ('left over', '[]')")
        db.execute(
            "INSERT INTO sessions (session_id, principal, kind, created_at, version)"
            " VALUES ('s', '', 'main', '', 3)"
        )
        for n, digest in enumerate(("used", "used", "lost \0"), start=1):
            body = json.dumps({"type": "register_tools", "digest": digest})
            row = (n, "register_tools" if n < 3 else "message", body)
            db.execute("INSERT INTO entries VALUES ('s', %s, %s, %s)", row)
    store = open_store(url)
    assert [await store.get_catalog(name) for name in ("used", "left over")] == [(), None]
    await store.delete("s")
    assert await store.get_catalog("used") is None
    await store.aclose()


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


class Wire(socketserver.ThreadingTCPServer):
    """Stands between the store and its server; `cut` loses the next answer on the way back."""

    daemon_threads = True

    def __init__(self, socket_path: str) -> None:
        super().__init__(("127.0.0.1", 0), _Carrier)
        self.socket_path, self.cut = socket_path, False


class _Carrier(socketserver.BaseRequestHandler):
    def handle(self) -> None:
        with socket.socket(socket.AF_UNIX) as server:
            server.connect(self.server.socket_path)
            back = threading.Thread(target=self._carry, args=(server, self.request, True))
            back.start()
            self._carry(self.request, server, False)
            back.join()

    def _carry(self, source: socket.socket, target: socket.socket, is_answer: bool) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                if is_answer and self.server.cut:
                    self.server.cut = False
                    break
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def wire(postgres):
    with Wire(f"{postgres.home}/.s.PGSQL.5432") as wire:
        thread = threading.Thread(target=wire.serve_forever, args=(0.05,))
        thread.start()
        yield wire
        wire.shutdown()
        thread.join()


async def test_an_append_whose_answer_is_lost_is_applied_once(url, wire):
    database, port = url.split("/")[3].split("?")[0], wire.server_address[1]
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


def test_without_the_extra_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "mcp_context_server.stores.postgres", None)
    with pytest.raises(InvalidInput, match=r"mcp-context-server\[postgres\]"):
        open_store("postgresql://db/x")
