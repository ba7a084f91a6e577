"""Every case that users met is named beside the tests of its class, and has one that exists."""

import ast
from pathlib import Path

import pytest

HERE = Path(__file__).parent


def cases_of(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """The table `CASES` of a module of tests."""
    tables = (
        node.value
        for node in tree.body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "CASES"
    )
    return ast.literal_eval(next(tables))


CLASSES = (
    "test_clearing.py",
    "test_huge_results.py",
    "test_images.py",
    "test_pairs.py",
    "test_prompt_cache.py",
    "test_subagents.py",
    "test_summaries.py",
    "test_thinking.py",
    "test_transport.py",
)


@pytest.mark.parametrize("name", CLASSES)
def test_each_case_names_tests_that_are_there_and_each_test_has_its_case(name):
    tree = ast.parse((HERE / name).read_text(encoding="utf-8"))
    there = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name[:5] == "test_"
    }
    cases = cases_of(tree)
    assert all(cases.values())
    assert {test for tests in cases.values() for test in tests} == there
