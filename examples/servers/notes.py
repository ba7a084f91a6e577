"""A small MCP server over stdio: notes kept for as long as it runs."""

from mcp.server import MCPServer

server = MCPServer("notes", log_level="WARNING")
notes: dict[str, str] = {}


@server.tool()
def add_note(title: str, text: str) -> str:
    """Write a note down under a title; a note of that title gives way."""
    notes[title] = text
    return f"{len(notes)} notes"


@server.tool()
def search_notes(words: str) -> list[str]:
    """The titles of the notes in which all of these words occur."""
    return [
        title
        for title, text in notes.items()
        if all(word.lower() in f"{title} {text}".lower() for word in words.split())
    ]


@server.tool()
def delete_note(title: str) -> str:
    """Throw a note away."""
    return "gone" if notes.pop(title, None) is not None else "there was none"


if __name__ == "__main__":
    server.run()
