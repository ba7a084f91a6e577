"""`python -m mcp_context_server` is the command `mcp-context-server`.

A host's hooks are answered without the command line, which takes longer to import.
"""

import sys


def main() -> None:
    from mcp_context_server.hosts.hooks.run import is_hook, run

    arguments = sys.argv[1:]
    if arguments[:1] in (["hook"], ["statusline"]) and is_hook(arguments):
        run(arguments)
        return
    from mcp_context_server.cli import main as command_line

    command_line(prog_name="mcp-context-server")


if __name__ == "__main__":
    main()
