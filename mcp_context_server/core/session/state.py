"""What is known of a conversation at one version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from mcp_context_server.core.breaker import Breaker
from mcp_context_server.core.edits import (
    Collapse,
    Compact,
    Configure,
    Delegate,
    Edit,
    Follow,
    Queue,
)
from mcp_context_server.core.growth import Growth
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.memory.notes import Mark, SessionMemory
from mcp_context_server.core.messages import Messages
from mcp_context_server.core.models import lookup
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.recovery.steps import RecoveryState
from mcp_context_server.core.session.anchor import Anchor, Overhead
from mcp_context_server.core.session.results import Caller, Contributor
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import EMPTY, Tally
from mcp_context_server.core.tokens.images import Media
from mcp_context_server.core.toolsearch.deferral import AUTO, SearchMode
from mcp_context_server.core.toolsearch.toolset import Toolset


@dataclass(frozen=True, slots=True)
class Session:
    """What is known of a conversation at one version."""

    version: int = 0
    settings: Configure = field(default_factory=Configure)
    policy: Policy = field(default_factory=Policy)
    model: str = ""
    """The model it was opened with, else the one of the newest response."""
    learned: Mapping[str, int] = field(default_factory=lambda: MappingProxyType({}))
    """Context windows in tokens that overflow errors told, by model."""
    view: Messages = ()
    ledger: Ledger = field(default_factory=Ledger)
    """The view in figures."""
    tally: Tally = EMPTY
    """Tokens of the view by class, for this model."""
    unreached: Tally = EMPTY
    """What left the view here though the host that is followed sends it still."""
    system_tally: Tally = EMPTY
    """Tokens of the system prompt it was opened with."""
    search_mode: SearchMode = AUTO
    tools: Toolset | None = None
    """The registered tools; None where nobody registered any."""
    anchor: Anchor | None = None
    overhead: Overhead | None = None
    calibration: Calibration = field(default_factory=Calibration)
    unread_tokens: int = 0
    """Tokens that the newest report shows were cached and not read, with the view as it was."""
    largest: tuple[Contributor, ...] = ()
    open_calls: Mapping[str, Caller] = field(default_factory=lambda: MappingProxyType({}))
    aliases: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))
    """Ids that open calls came with, and those that they have in the view."""
    made_up: frozenset[str] = frozenset()
    """Calls whose result in the view is made up, since the real one has not come."""
    edits: tuple[tuple[int, Edit], ...] = ()
    """Every edit of the view that counts, with its sequence number, oldest first."""
    boundary: Compact | None = None
    boundaries: int = 0
    previous: tuple[Messages, ...] = ()
    """The views just before the newest boundaries, newest first; a host may go back to them."""
    follow: Follow | None = None
    responses: int = 0
    last_response_at: str | None = None
    responded: int = 0
    """The sequence number of the newest response: what was planned before it has been sent."""
    revision: int = 0
    """The sequence number of the newest edit that changed the view."""
    undone: int = 0
    """The sequence number of the newest undo."""
    late: int = 0
    """The sequence number of the newest result that came after a made-up one stood for it."""
    media: Media = field(default_factory=Media)
    """The images and documents in the view."""
    queued: tuple[tuple[int, Queue], ...] = ()
    """Clearings that wait for a cold cache, with their sequence numbers, oldest first."""
    delegated: tuple[Delegate, ...] = ()
    """What the host was told to clear in its own cache since the view last changed under it."""
    delegated_tokens: int = 0
    """What of that the newest report, or the estimate, still counts."""
    staged: tuple[Collapse, ...] = ()
    """Notes for groups of old rounds that are ready to be committed, oldest first."""
    breaker: Breaker = field(default_factory=Breaker)
    recovery: RecoveryState = field(default_factory=RecoveryState)
    """What was tried since the last response came back."""
    memory: SessionMemory = field(default_factory=SessionMemory)
    told: Mark = field(default_factory=Mark)
    """How far the conversation has come, whatever has left the view since."""
    growth: Growth = field(default_factory=Growth)
    """The window at each response so far, across boundaries."""
    opening: str = ""
    """How the first request of a person begins, if there was one."""

    family: str = field(init=False, default="")
    """The tokenizer family of its model."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "family", lookup(self.model).tokenizer)

    @property
    def follows(self) -> bool:
        """Whether a host writes its transcript and decides what is sent, whatever the view is."""
        return bool(self.settings.transcript)

    @property
    def sent(self) -> Tally:
        """Tokens by class of what stands in the model's window: the view's, or the host's."""
        return self.tally + self.unreached

    @property
    def tools_tally(self) -> Tally:
        """Tokens of the registered definitions that stand in the prompt."""
        return self.tools.tally if self.tools else EMPTY
