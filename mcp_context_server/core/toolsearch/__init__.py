"""Tool search: a session's catalogue, what of it is deferred, and the index that finds it."""
