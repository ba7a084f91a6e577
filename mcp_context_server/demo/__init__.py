"""A recorded conversation, for a first look and for tests: `recording()`.

A coding agent finds a fault in a tide-table service, mends it and adds a feature. The
project, the people and every word are made up; `benchmarks/record_demo.py` makes the file.
"""

import json
from functools import cache
from importlib.resources import files

from mcp_context_server.core.messages import Message, Messages


@cache
def recording() -> Messages:
    """The conversation in order, each response with the usage that the API would report."""
    lines = files(__name__).joinpath("recording.jsonl").read_text("utf-8").splitlines()
    return tuple(Message.model_validate(json.loads(line)) for line in lines)
