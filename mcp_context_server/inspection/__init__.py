"""For those who want to look: where a recorded conversation's context went, and what it cost."""
