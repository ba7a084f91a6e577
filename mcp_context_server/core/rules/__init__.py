"""The Messages API's rules: what a request breaks, and a legal one made of a broken one."""

from mcp_context_server.core.rules.draft import Repair
from mcp_context_server.core.rules.ordering import stripped
from mcp_context_server.core.rules.originals import Originals
from mcp_context_server.core.rules.repair import repair
from mcp_context_server.core.rules.request import Fault, ModelTraits, traits_of
from mcp_context_server.core.rules.table import RULES, validate

__all__ = [
    "RULES",
    "Fault",
    "ModelTraits",
    "Originals",
    "Repair",
    "repair",
    "stripped",
    "traits_of",
    "validate",
]
