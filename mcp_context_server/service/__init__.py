"""The use cases: load a session, decide in the core, append what was decided."""
