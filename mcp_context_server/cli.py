"""The command line: finds the command, and turns our errors into exit codes."""

from importlib import import_module

import click

from mcp_context_server import __version__
from mcp_context_server.commands import COMMANDS
from mcp_context_server.errors import ContextServerError


class _Commands(click.Group):
    """Imports a command when it is called; an option before any command is one of `serve`.

    Our errors end it with exit code 1 and one line on stderr, not a traceback.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        command: click.Command = import_module(f"mcp_context_server.commands.{cmd_name}").command
        command.name = cmd_name
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own = {name for option in self.get_params(ctx) for name in option.opts}
        if args and args[0].startswith("-") and args[0] not in own:
            args = ["serve", *args]
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except ContextServerError as error:
            raise click.ClickException(str(error)) from error


@click.group(
    cls=_Commands,
    invoke_without_command=True,
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__)
@click.pass_context
def main(context: click.Context) -> None:
    """Care for an agent's context window, over MCP.

    Without a command it serves on stdio, for a host to start, and takes the options of `serve`.
    """
    if context.invoked_subcommand is None:
        from mcp_context_server.commands import serve

        context.invoke(serve.command)
