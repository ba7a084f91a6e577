"""Two processes, one database, one conversation."""

import pytest

from examples.two_replicas import main


@pytest.mark.anyio
async def test_two_processes_serve_one_session_and_refuse_an_old_version(postgres, capsys):
    one, other = await main(postgres.new_database())
    said = capsys.readouterr().out
    assert one == other
    assert one["messages"] == 6
    assert said.startswith("at version 7: ")
    assert "Both." in said
