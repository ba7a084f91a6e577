"""Readers of hosts' own transcripts: one for each format, `follow` for live files.

`read_events` and `Follower` (in `follow`) give events; `timeline` adds them up,
`entries` turns them into a session's entries; `locate` finds the caller's own file.
"""
