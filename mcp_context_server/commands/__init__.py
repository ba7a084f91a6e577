"""The commands of the command line: one module each, imported when it is called.

`COMMANDS` names them in the order of the help. A module `x.py` holds `command`.
"""

COMMANDS = ("serve", "inspect", "sessions", "demo", "hosts", "hook", "statusline", "doctor")
