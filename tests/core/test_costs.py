"""What responses cost, by the published prices."""

from mcp_context_server.core.models import lookup
from mcp_context_server.core.tokens.costs import Cost, long_written_tokens, response_cost
from mcp_context_server.core.tokens.usage import Usage

SONNET = lookup("claude-sonnet-4-5")
"""3 dollars a million of input, 15 of output; cache reads a tenth, writes 1.25 or 2 times."""


def rounded(cost: Cost | None) -> tuple[float, ...]:
    assert cost is not None
    parts = (cost.fresh, cost.read, cost.written, cost.output, cost.uncached_input)
    return tuple(round(part, 9) for part in parts)


def test_each_kind_of_token_has_its_own_price():
    usage = Usage(1_000, cache_read=10_000, cache_creation=2_000, output=500)
    assert rounded(response_cost(SONNET, usage)) == (0.003, 0.003, 0.0075, 0.0075, 0.039)


def test_what_is_written_for_an_hour_costs_more():
    usage = Usage(0, cache_creation=2_000)
    assert rounded(response_cost(SONNET, usage, long_written=2_000))[2] == 0.012
    assert rounded(response_cost(SONNET, usage, long_written=9_999))[2] == 0.012


def test_a_long_prompt_is_billed_whole_at_the_dearer_price():
    """Above 100,000 tokens 0.50 and 2.50 dollars a million."""
    cost = response_cost(lookup("claude-haiku-5.5"), Usage(100_001, output=1_000))
    assert rounded(cost) == (0.0500005, 0, 0, 0.0025, 0.0500005)


def test_without_published_prices_no_cost_is_told():
    assert response_cost(lookup("made-up-model-1"), Usage(10)) is None


def test_how_much_was_written_for_an_hour_is_read_where_it_is_told():
    told = {"cache_creation": {"ephemeral_1h_input_tokens": 70, "ephemeral_5m_input_tokens": 1}}
    assert long_written_tokens(told) == 70
    for odd in ({}, {"cache_creation": 5}, {"cache_creation": {"ephemeral_1h_input_tokens": "7"}}):
        assert long_written_tokens(odd) == 0


def test_costs_add_up():
    assert (Cost(1, 2, 3, 4, 5) + Cost(1, 1, 1, 1, 1)).total == 14
