"""One command runs every benchmark, and says of each that can't run here what it lacks."""

from pathlib import Path

import pytest

from benchmarks import __main__ as benchmarks
from benchmarks.__main__ import Missing, Places, command_of, main, section
from benchmarks.catalogue import CATALOGUE, MAKERS, PARTS, Benchmark
from benchmarks.peers import INSTALLED, Peers

HERE = Path(benchmarks.__file__).parent
ITSELF = {"__main__", "catalogue", "peers"}
NOTHING = Places()


def test_every_script_is_in_the_catalogue_or_makes_a_file_of_the_package():
    scripts = {path.stem for path in HERE.glob("*.py")} - ITSELF
    assert scripts == {each.name for each in CATALOGUE} | {*MAKERS, *PARTS}


def test_what_lacks_its_data_says_so_and_counts_as_no_failure(capsys):
    assert main(["--only", "compaction,toolsearch"]) == 0
    *_, first, second = (s for s in capsys.readouterr().out.split("## ") if s.strip())
    lacks = [piece.strip().partition("\n\n")[2] for piece in (first, second)]
    assert lacks == [
        "Left out: it needs --data DIRECTORY with toolsearch.",
        "Left out: it needs --data DIRECTORY with transcripts/claude-code.",
    ]


def test_data_that_is_not_there_is_named(tmp_path):
    tokens = Benchmark(name="tokens", shows="x", arguments=("{data}/token_truth.tsv.gz",))
    with pytest.raises(Missing, match=r"there is no token_truth\.tsv\.gz in DATA"):
        command_of(tokens, Places(data=tmp_path), is_small=False)


def test_modules_that_are_not_there_are_named():
    needy = Benchmark(name="x", shows="x", modules=("no_such_module",))
    with pytest.raises(Missing, match="it needs no_such_module, which --peers DIRECTORY installs"):
        command_of(needy, NOTHING, is_small=False)


def test_peers_that_are_there_are_compared_with_and_others_left_out(tmp_path):
    compared = Benchmark(
        name="clearing",
        shows="x",
        with_peers=("--langchain", "{peers}/langchain/bin/python"),
        with_servers=True,
        environment="measuring",
    )
    for path in ("langchain/bin/python", "acco/bin/acco", f"measuring/{INSTALLED}"):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).touch()
    places = Places(peers=Peers(tmp_path))
    interpreter, script, *arguments = command_of(compared, places, is_small=False)
    assert (interpreter, script) == (f"{tmp_path}/measuring/bin/python", "benchmarks/clearing.py")
    assert arguments == [
        f"{tmp_path}/acco/bin/acco serve",
        "--langchain",
        f"{tmp_path}/langchain/bin/python",
    ]
    alone = command_of(compared, NOTHING, is_small=False)
    assert alone[1:] == ("benchmarks/clearing.py",)


def test_a_script_that_fails_is_shown_with_its_last_words():
    broken = Benchmark(name="compaction", shows="x", arguments=("--no-such-option",))
    piece, is_good = section(broken, NOTHING, is_small=False)
    assert not is_good
    assert "(failed)" in piece
    assert "the following arguments are required: paths" in piece


def test_results_are_kept_and_name_no_directory_of_the_machine(tmp_path, monkeypatch, capsys):
    data = tmp_path / "data"
    (data / "transcripts" / "gemini").mkdir(parents=True)
    (data / "transcripts" / "gemini" / "a.json").write_text("{}")
    monkeypatch.setattr(benchmarks, "RESULTS", tmp_path / "RESULTS.md")
    asked = ["--only", "transcripts", "--small", "--data", str(data), "--write"]
    assert main(asked) == 0
    kept = (tmp_path / "RESULTS.md").read_text()
    assert kept.strip() == capsys.readouterr().out.strip()
    assert "by `python -m benchmarks --only transcripts --data DATA --small`." in kept
    assert "`python benchmarks/transcripts.py DATA/transcripts/gemini` (" in kept
    assert str(tmp_path) not in kept
    assert str(HERE.parent) not in kept


def test_a_name_that_no_benchmark_has_is_refused_with_those_that_there_are(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--only", "speed"])
    assert ended.value.code == 2
    assert "speed: not among frugality, startup, latency" in capsys.readouterr().err
