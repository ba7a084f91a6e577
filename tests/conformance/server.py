"""The product's server with the conformance suite's fixtures, on a free port of this machine.

    python tests/conformance/server.py

It is `serve --transport all`: the address is on stderr, and a signal ends it.
"""

import sys
from pathlib import Path
from typing import Any

from fixtures import add_fixtures
from mcp.server import MCPServer

sys.path.insert(0, str(Path(__file__).parents[2]))

from mcp_context_server import serving

build_server = serving.build_server


def with_fixtures(*args: Any, **options: Any) -> MCPServer[Any]:
    """The server as it is built, and what the suite looks for."""
    server = build_server(*args, **options)
    add_fixtures(server)
    return server


serving.build_server = with_fixtures
serving.serve({"transport": "all", "port": 0, "store": "memory:"})
