"""The product's server with the conformance suite's fixtures, on a free port of this machine.

    python tests/conformance/server.py

It prints its address once it listens, and serves until its stdin ends.
"""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import uvicorn
from fixtures import add_fixtures
from starlette.applications import Starlette

sys.path.insert(0, str(Path(__file__).parents[2]))

from mcp_context_server.server import build_server, build_service
from mcp_context_server.settings import Settings
from mcp_context_server.stores.memory import MemoryStore


def build_app(serving: list[uvicorn.Server]) -> Starlette:
    """Streamable HTTP and SSE over one server; it tells its address when it is ready."""
    server = build_server(build_service(Settings(), MemoryStore()))
    add_fixtures(server)
    streamable, sse = server.streamable_http_app(), server.sse_app()

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with streamable.router.lifespan_context(app):
            yield

    return Starlette(routes=[*streamable.routes, *sse.routes], lifespan=lifespan)


class Telling(uvicorn.Server):
    """Prints its address once it listens, and ends with its stdin."""

    async def startup(self, sockets: list | None = None) -> None:
        await super().startup(sockets)
        host, port = self.servers[0].sockets[0].getsockname()
        print(f"http://{host}:{port}", flush=True)


async def main() -> None:
    config = uvicorn.Config(build_app([]), host="127.0.0.1", port=0, log_level="error")
    serving = Telling(config)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(serving.serve)
        await anyio.to_thread.run_sync(sys.stdin.read)
        serving.should_exit = True


anyio.run(main)
