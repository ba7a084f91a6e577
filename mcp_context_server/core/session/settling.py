"""The session under other settings or another model."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from pydantic import ValidationError

from mcp_context_server.core.edits import Configure
from mcp_context_server.core.ledger import Ledger
from mcp_context_server.core.models import lookup
from mcp_context_server.core.policy import Policy
from mcp_context_server.core.session.results import largest_results
from mcp_context_server.core.session.state import Session
from mcp_context_server.core.session.tooling import retooled
from mcp_context_server.core.tokens.calibration import Calibration
from mcp_context_server.core.tokens.estimates import EMPTY, tally_messages, tally_system


def configured(session: Session, edit: Configure) -> Session:
    told = edit.model_dump(exclude_none=True, exclude={"type", "at"})
    settings = session.settings.model_copy(update=told)
    policy = _overridden(session.policy, edit.policy or {})
    unreached = session.unreached if settings.transcript else EMPTY
    changed = replace(session, settings=settings, policy=policy, unreached=unreached)
    return with_model(changed, settings.model or session.model)


def _overridden(policy: Policy, overrides: Mapping[str, Any]) -> Policy:
    """The policy with overrides. What was accepted once and can't be any more, such as a number
    that is gone since, stays as it was: a stored session opens all the same."""
    known = policy.model_dump(exclude_unset=True)
    try:
        return Policy.model_validate({**known, **overrides})
    except ValidationError as error:
        bad = {fault["loc"][0] for fault in error.errors() if fault["loc"]}
        kept = {name: value for name, value in overrides.items() if name not in bad}
        return _overridden(policy, kept) if len(kept) < len(overrides) else policy


def with_model(session: Session, model: str) -> Session:
    """The session under a model; another tokenizer means another tally of everything."""
    family = lookup(model).tokenizer
    system = tally_system(session.settings.system or "", family)
    if family == session.family:
        return retooled(replace(session, model=model, system_tally=system))
    changed = replace(
        session,
        model=model,
        system_tally=system,
        ledger=Ledger.of(session.view, family),
        tally=tally_messages(session.view, family),
        unreached=EMPTY,
        anchor=None,
        overhead=None,
        calibration=Calibration(),
    )
    largest = largest_results(changed.view, changed.ledger, family, session.policy.largest_count)
    return retooled(replace(changed, largest=largest))
