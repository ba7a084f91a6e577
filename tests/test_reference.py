"""The reference pages say what the code says."""

from publishing import reference


def test_the_reference_pages_are_what_the_code_would_write():
    """Where this fails, run `python -m publishing.reference` and commit the pages."""
    texts = {
        path.name: path.read_text(encoding="utf-8") for path in reference.DIRECTORY.glob("*.md")
    }
    made = {name: text for name, text in texts.items() if text.startswith(reference.MADE)}
    assert made == reference.pages()


def test_every_setting_and_every_number_has_a_sentence():
    pages = reference.pages()
    rows = [
        line.split(" | ")
        for name in ("settings.md", "policy.md")
        for line in pages[name].split("## Variables of other programs")[0].splitlines()
        if line.startswith("| `")
    ]
    assert [row[0] for row in rows if not row[-1].strip(" |")] == []
