"""Phrases: alternatives of which a text may have any, as regular expressions."""

import re
from functools import cache

Phrases = tuple[str, ...]


@cache
def pattern(phrases: Phrases) -> re.Pattern[str]:
    """A pattern that finds any of them."""
    return re.compile("|".join(phrases))


def says(text: str, phrases: Phrases) -> bool:
    """Whether a text has any of them."""
    return pattern(phrases).search(text) is not None
