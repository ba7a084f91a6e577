"""Every table that the benchmarks print: the script, what it shows, and what it needs.

Arguments may hold `{data}`, the directory with recorded conversations and figures, and
`{peers}`, the directory with the peers' environments; what needs either is left out
without it.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """One script of this directory, run once."""

    name: str
    """The script's name, without its ending."""
    shows: str
    arguments: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    """Arguments of a short run, to see that it works."""
    with_peers: tuple[str, ...] = ()
    """Arguments that are added where the peer that they name is installed."""
    with_servers: bool = False
    """Whether the commands of the peers' MCP servers are added."""
    environment: str = ""
    """The peers' environment that it runs in, where there is one."""
    modules: tuple[str, ...] = ()
    """What it imports that the project doesn't have."""
    needs_postgres: bool = False


CATALOGUE: tuple[Benchmark, ...] = (
    Benchmark(
        name="frugality",
        shows="what the server costs a model's window by being there",
        with_servers=True,
    ),
    Benchmark(
        name="startup",
        shows="from being spawned to answering `initialize`",
        arguments=("20",),
        small=("1",),
        with_servers=True,
    ),
    Benchmark(
        name="latency",
        shows="a status, beside an empty tool of a bare SDK server",
        arguments=("1000",),
        small=("10",),
    ),
    Benchmark(
        name="hooks",
        shows="each hook of a host, beside a Python that does nothing",
        arguments=("5", "9"),
        small=("0.2", "1"),
    ),
    Benchmark(
        name="accounting",
        shows="status and append, on a short and on a long session",
    ),
    Benchmark(
        name="growth",
        shows="append, status and cold opening, up to 100,000 messages",
        arguments=("sqlite", "postgres"),
        small=("sqlite",),
    ),
    Benchmark(
        name="load",
        shows="200 agents on four replicas behind a balancer",
        arguments=("--replicas", "4", "--agents", "200", "--seconds", "60"),
        small=("--replicas", "1", "--agents", "4", "--seconds", "2", "--store", "sqlite"),
        needs_postgres=True,
    ),
    Benchmark(
        name="faults",
        shows="what is lost when replicas and the database are killed",
        arguments=("100",),
        small=("2",),
        needs_postgres=True,
    ),
    Benchmark(
        name="clearing",
        shows="planning a turn and clearing results, beside LangChain",
        with_peers=("--langchain", "{peers}/langchain/bin/python"),
    ),
    Benchmark(
        name="tokens",
        shows="the estimate against what providers billed, beside other counters",
        arguments=("{data}/token_truth.tsv.gz",),
        small=("{data}/token_truth.tsv.gz",),
        environment="measuring",
        modules=("numpy", "scipy"),
    ),
    Benchmark(
        name="toolsearch",
        shows="what tool search finds, and what it costs, beside other searches",
        arguments=("{data}/toolsearch",),
        small=("{data}/toolsearch", "--costs", "1000", "--methods", "ours"),
        environment="measuring",
    ),
    Benchmark(
        name="compaction",
        shows="what a compacted conversation still holds of what is needed next",
        arguments=("{data}/transcripts/claude-code",),
        small=("{data}/transcripts/claude-code",),
    ),
    Benchmark(
        name="conformance",
        shows="how long planted facts survive compaction after compaction",
        arguments=("--seeds", "12"),
        small=("--seeds", "1", "--rounds", "2"),
        environment="conformance",
        modules=("compaction_kit",),
    ),
    Benchmark(
        name="memory",
        shows="what stays when the session memory serves as the summary",
        arguments=("{data}/transcripts/claude-code",),
        small=("{data}/transcripts/claude-code",),
    ),
    Benchmark(
        name="replay",
        shows="recorded conversations, turn by turn, in windows smaller than they had",
        arguments=("{data}/transcripts/claude-code",),
        small=("{data}/transcripts/claude-code",),
    ),
    Benchmark(
        name="transcripts",
        shows="what each recorded conversation of each host says",
        arguments=("{data}/transcripts",),
        small=("{data}/transcripts/gemini",),
    ),
)

MAKERS = ("distil_meanings", "fit_tokens", "record_demo")
"""Scripts that make files of the package and print no table."""

PARTS = ("in_session", "token_truth")
"""What scripts have in common."""
