"""The hosts this server is at home in: how to register there, their hooks, their transcripts."""
