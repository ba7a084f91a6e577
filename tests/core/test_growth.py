"""How a session remembers the way its window filled."""

from conversations import assistant, user

from mcp_context_server.core.edits import Compact, ReportUsage
from mcp_context_server.core.growth import MOST_POINTS, Growth, Point, thinned
from mcp_context_server.core.session import Session, fold


def spoken(id: str, tokens: int, **more: object):
    told = {"input_tokens": tokens - 40, "cache_read_input_tokens": 40, "output_tokens": 500}
    return assistant("ok", id=id, usage=told, **more)


def grown(*entries: object) -> tuple[Point, ...]:
    return fold(Session(), enumerate(entries, start=1), version=len(entries)).growth.points


def test_each_response_with_a_usage_is_a_point_of_its_turn():
    points = grown(
        user("one", id="u1"),
        spoken("a1", 100),
        assistant("no usage", id="a2"),
        user("two", id="u2"),
        spoken("a3", 300),
    )
    assert points == (Point(1, 100, 40), Point(2, 300, 40))


def test_a_later_report_for_the_same_response_takes_the_place_of_the_earlier():
    first, again = (spoken(f"a{n}", 100 * n, api_message_id="r1") for n in (1, 2))
    assert grown(user("one", id="u1"), first, again) == (Point(1, 200, 40),)


def test_a_report_that_comes_by_itself_counts_as_well():
    report = ReportUsage(usage={"input_tokens": 70, "output_tokens": 500})
    assert grown(user("one", id="u1"), assistant("ok", id="a1"), report) == (Point(1, 70, 0),)


def test_the_response_after_a_compaction_says_so():
    cut = Compact(id="b1", trigger="manual", first="u1", last="a1", messages=(user("s", id="s1"),))
    points = grown(
        user("one", id="u1"), spoken("a1", 900), cut, user("two", id="u2"), spoken("a2", 100)
    )
    assert points == (Point(1, 900, 40), Point(2, 100, 40, "manual"))


def test_a_long_conversation_keeps_a_bounded_number_of_points_and_its_boundaries():
    growth = Growth()
    for n in range(2_000):
        if n == 1_001:
            growth = growth.compacted("auto")
        growth = growth.reported(f"r{n}", n, 0)
    tokens = [point.tokens for point in growth.points]
    assert len(tokens) <= MOST_POINTS
    assert [point.tokens for point in growth.points if point.boundary] == [1_001]
    assert {0, 1_000, 1_999} <= set(tokens)
    assert tokens == sorted(tokens)


def test_even_points_that_are_all_boundaries_are_thinned():
    points = tuple(Point(1, n, 0, "auto") for n in range(10))
    assert [point.tokens for point in thinned(points)] == [0, 2, 4, 6, 8]
