"""The summary's own words, by language: section titles and the phrases between verbatim text."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Wording:
    """What a summary says in its own voice, in one language. No phrase is an order."""

    sections: tuple[str, str, str, str, str, str, str, str, str]
    working_set: str
    # 1
    first_request: str
    newest_below: str
    rule: str
    focus: str
    # 2
    file_kinds: str
    programs: str
    terms: str
    # 3 and the working set
    read: str
    edited: str
    written: str
    newest_change: str
    stale: str
    tools: str
    directories: str
    ids: str
    in_command: str
    in_report: str
    in_search: str
    in_tool: str
    in_talk: str
    # 4 and 5
    failed: str
    fixed: str
    not_fixed: str
    changed: str
    answered: str
    # 6
    left_out: str
    same_as: str
    above: str
    more_requests: str
    # 7
    done: str
    in_progress: str
    open: str
    cancelled: str
    plan: str
    running: str
    # 8 and 9
    said: str
    no_result: str
    under_way: str
    idle: str
    none: str


ENGLISH = Wording(
    sections=(
        "Primary Request and Intent",
        "Key Technical Concepts",
        "Files and Code Sections",
        "Errors and Fixes",
        "Problem Solving",
        "All User Messages",
        "Pending Tasks",
        "Current Work",
        "Optional Next Step",
    ),
    working_set="Working Set",
    first_request="First request",
    newest_below="The newest request stands last in section 6.",
    rule="The user stated",
    focus="Asked of this summary",
    file_kinds="Kinds of files worked on",
    programs="Commands run",
    terms="Terms",
    read="read",
    edited="edited",
    written="written",
    newest_change="newest change",
    stale="changed since it was last read",
    tools="Tool arguments in use",
    directories="Directories",
    ids="Commits, ids and links",
    in_command="In commands and output of",
    in_report="In the report on",
    in_search="Found by searches",
    in_tool="In calls of",
    in_talk="Named in the conversation",
    failed="failed",
    fixed="succeeded later",
    not_fixed="no later success seen",
    changed="changed",
    answered="came to",
    left_out="characters left out",
    same_as="same as",
    above="quoted in section 1",
    more_requests="earlier messages left out",
    done="Done",
    in_progress="In progress",
    open="Open",
    cancelled="Cancelled",
    plan="Plan",
    running="Running in the background",
    said="Said",
    no_result="no result yet",
    under_way="The newest request was being worked on. The last words before the cut",
    idle="The newest request was answered and nothing was under way. The last words",
    none="–",
)
