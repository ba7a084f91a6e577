"""The functional core: values in, values out.

Nothing in this package awaits, reads a clock, opens a connection or draws a
random number. `tests/test_architecture.py` keeps it that way.
"""
