"""What was received, as digests: enough to tell whether protected blocks came back unaltered."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Originals:
    pass
