"""How many examples a law is tried on: a few in every run, as many as asked for in a hunt."""

import os

HUNTS = int(os.environ.get("HUNT", "0"))
"""Examples for each law of a run that hunts for what breaks one; 0 in any other run."""


def examples(count: int) -> int:
    """So many examples, or as many as the hunt wants."""
    return HUNTS or count
