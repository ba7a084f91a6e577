"""A PostgreSQL server of the tests' own, in a directory and on a socket of its own."""

import os
import shutil
import subprocess
import tempfile
import uuid
from dataclasses import dataclass
from pathlib import Path

DIRECTORIES = ("/usr/lib/postgresql/*/bin", "/usr/pgsql-*/bin", "/opt/homebrew/opt/postgresql*/bin")


def binaries() -> Path | None:
    """Where PostgreSQL's programs are on this machine, if they are."""
    found = shutil.which("initdb")
    if found:
        return Path(found).resolve().parent
    known = [path for pattern in DIRECTORIES for path in Path("/").glob(pattern[1:])]
    return max((path for path in known if (path / "initdb").exists()), default=None)


@dataclass
class Cluster:
    """A server that listens on a socket below `home`, run by a user who isn't root."""

    programs: Path
    home: Path
    user: str | None

    @classmethod
    def start_in(cls, programs: Path) -> "Cluster":
        # Sockets have short names, so this is not below pytest's own directory.
        home = Path(tempfile.mkdtemp(prefix="pg-"))
        user = "postgres" if os.geteuid() == 0 else None
        if user:
            shutil.chown(home, user)
        cluster = cls(programs, home, user)
        cluster.run("initdb", "-A", "trust", "-U", "postgres", "-E", "UTF8", "--no-sync")
        cluster.start()
        return cluster

    def run(self, program: str, *arguments: str) -> None:
        command = [str(self.programs / program), "-D", str(self.home / "data"), *arguments]
        subprocess.run(
            command, user=self.user, cwd=self.home, check=True, stdout=subprocess.DEVNULL
        )

    def start(self) -> None:
        options = f"-k {self.home} -c listen_addresses= -c fsync=off -c max_connections=300"
        log = str(self.home / "log")
        self.run("pg_ctl", "-w", "-l", log, "-o", options, "start")

    def stop(self, mode: str = "immediate") -> None:
        """End the server; at once, as if its machine had gone, unless told otherwise."""
        self.run("pg_ctl", "-w", "-m", mode, "stop")

    def kill_backends(self) -> None:
        """Cut every connection, as a failing network does."""
        with self.administer() as db:
            db.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )

    def administer(self):
        import psycopg

        return psycopg.connect(self.url("postgres"), autocommit=True)

    def url(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.home}"

    def new_database(self) -> str:
        """The URL of a database without anything in it."""
        name = f"t{uuid.uuid4().hex}"
        with self.administer() as db:
            db.execute(f'CREATE DATABASE "{name}"')
        return self.url(name)

    def remove(self) -> None:
        if (self.home / "data" / "postmaster.pid").exists():
            self.stop()
        shutil.rmtree(self.home, ignore_errors=True)
