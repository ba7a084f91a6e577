"""What is kept of sessions: in memory, beside the store over any store, and in files."""
