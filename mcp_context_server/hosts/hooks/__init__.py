"""What a host's hooks and status line get from us, in a moment and without the server.

A hook runs at every prompt, so nothing here imports the server or a model library before
it must: the end of the transcript is read instead of all of it, thresholds are worked out
once and kept, and what takes longer is prepared in the background (`handover`).
"""
