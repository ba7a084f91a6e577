"""Tells how many tokens something takes: by estimate, or by the model's own tokenizer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mcp_context_server.errors import CountUnavailable, InvalidInput
from mcp_context_server.files import FileReader
from mcp_context_server.keeping.resident import Live
from mcp_context_server.ports import Countable, TokenCounter

if TYPE_CHECKING:
    from mcp_context_server.answers import Estimable, Method
    from mcp_context_server.results import TokenEstimate


@dataclass(frozen=True, slots=True)
class Estimating:
    """Reads the files that are asked about, and knows whom to ask for exact counts."""

    files: FileReader
    counters: Sequence[TokenCounter]

    async def estimate(
        self, live: Live, what: Estimable, *, model: str, method: Method, exact: bool
    ) -> TokenEstimate:
        """How many tokens something takes. Raises `InvalidInput` unless one thing is given.

        With `exact`, the model's own tokenizer is asked; where it can't be, the estimate
        comes back with the reason.
        """
        # What shapes answers is loaded with the first of them: start-up waits for less.
        from mcp_context_server import answers

        given = [name for name in what.__slots__ if getattr(what, name)]
        if len(given) != 1:
            message = "Give one of `text`, `messages`, `tools` and `path`."
            raise InvalidInput(message)
        text = await self.files.read(what.path) if what.path else what.text
        what, model = replace(what, text=text), model or live.session.model
        factor = live.session.calibration.factor if model == live.session.model else 1.0
        estimated = answers.estimate_of(live.record.session_id, what, model, method, factor=factor)
        if not exact:
            return estimated
        try:
            exactly = await self._count(answers.countable_of(what, model))
            return answers.counted(estimated, exactly)
        except CountUnavailable as problem:
            return answers.uncounted(estimated, problem)

    async def _count(self, what: Countable) -> int:
        """An exact count. Raises `CountUnavailable`."""
        counter = next((each for each in self.counters if each.serves(what.model)), None)
        if counter is None:
            named = f"of {what.model!r}" if what.model else "of a model that nobody named"
            message = f"the tokenizer {named} can't be asked here."
            raise CountUnavailable(message)
        return await counter.count(what)
