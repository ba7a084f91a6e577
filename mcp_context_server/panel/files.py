"""Writes a report to a file, whole or not at all."""

import os
import tempfile
from pathlib import Path

from mcp_context_server.errors import InvalidInput
from mcp_context_server.inspection.reading import Inspection
from mcp_context_server.panel.pages import report


def write_report(inspection: Inspection, out: Path) -> None:
    """Write the report of an inspection. Raises `InvalidInput` where that is not possible.

    A file that was there is replaced only when the new one is complete.
    """
    page, half = report(inspection), None
    try:
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", dir=out.parent, prefix=f".{out.name[:80]}.", delete=False
        ) as half:
            half.write(page)
        os.replace(half.name, out)
    except OSError as error:
        if half is not None:
            Path(half.name).unlink(missing_ok=True)
        message = f"The report can't be written to {out}: {error.strerror}. Name another file."
        raise InvalidInput(message) from error
