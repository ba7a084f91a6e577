"""What the tests of clients share."""

from collections.abc import Callable, Sequence

import pytest


@pytest.fixture
def tell(capfd) -> Callable[[str, str, Sequence[object]], None]:
    """Writes down which client played, by which transport, and how much."""

    def told(client: str, transport: str, answers: Sequence[object]) -> None:
        with capfd.disabled():
            print(f"\n{client} over {transport}: {len(answers)} calls", end=" ", flush=True)

    return told
