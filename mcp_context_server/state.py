"""What a running server gives its tools, resources and prompts."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from mcp_context_server.identity import Identity
from mcp_context_server.service.sessions import ContextService

if TYPE_CHECKING:
    from mcp_context_server.service.compacting import Compactor


@dataclass(slots=True)
class App:
    """The service, whose session a call is for, and what compacts, made when first needed."""

    service: ContextService
    identity: Identity
    make_compactor: Callable[[], Compactor]
    _compactor: Compactor | None = field(default=None, init=False)

    @property
    def compactor(self) -> Compactor:
        if self._compactor is None:
            self._compactor = self.make_compactor()
        return self._compactor
