"""The context panel and the report of `inspect`: each one self-contained HTML page.

`pages.py` assembles both of the files beside it: a look and a small chart library that
they share, and a script each. Nothing is loaded from anywhere when they are opened.
"""

from mcp_context_server.panel.pages import page, page_policy, report

__all__ = ["page", "page_policy", "report"]
