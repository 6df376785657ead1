"""Writes the document tables that follow from the route map: the operations of `docs/http.md` and the forms of
`docs/security.md`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from handlers.core.person_posts import PersonPost, ReauthRule
from handlers.openapi.document import GROUPS, path_of
from handlers.openapi.operations import OPERATIONS
from handlers.routes import POSTS, ROUTES
from store.lifetimes import MINUTE, SECOND

DOCS = Path(__file__).resolve().parent.parent / "docs"
DOCUMENTS = (DOCS / "http.md", DOCS / "security.md")
_PART = re.compile(r"^<!-- table of (\w+) -->\n.*?^<!-- end -->$", re.MULTILINE | re.DOTALL)


def operations() -> Iterator[str]:
    """A row for each operation of the OpenAPI document, in the order of the map."""
    yield "| operation | scope | limit | what |"
    yield "|---|---|---|---|"
    for route in ROUTES:
        for method, operation in OPERATIONS.get(route.name, {}).items():
            writes, policy = method != "get", route.policy
            scopes = ((writes and policy.write_scope) or policy.scope).split()
            path = re.sub(r"\{(\w+)\}", r":\1", path_of(route.pattern, operation)).replace(":registered", ":client_id")
            window = _limit((writes and policy.write_window) or policy.window)
            words = (f"`{method.upper()} {path}`", " or ".join(f"`{one}`" for one in scopes), window, operation.summary)
            yield f"| {' | '.join(words)} |"


def forms() -> Iterator[str]:
    """A row for each form that people submit."""
    yield "| form | what it does | requires | who is notified | undone by |"
    yield "|---|---|---|---|---|"
    for name, post in POSTS.items():
        words = (f"`{name}`", post.does, _takes(post), ", ".join(post.tells) or "nobody", post.undo or "nobody can")
        yield f"| {' | '.join(words)} |"


def _limit(window: str) -> str:
    if not window:
        return ""
    group = GROUPS[window]
    return f"{group.limit} {'a minute' if group.period == MINUTE else f'in {group.period // SECOND} seconds'}"


def _takes(post: PersonPost) -> str:
    takes = "no session" if not post.session else "session"
    if post.reauth is not ReauthRule.NONE:
        takes += f", {post.reauth.value}" + " re-authentication" * (post.reauth is ReauthRule.RECENT)
    if post.excused:
        takes += f", but with `{post.excused[0]}={post.excused[1]}`"
    return takes


TABLES = {"operations": operations, "forms": forms}


def renewed(text: str) -> str:
    """A document with up-to-date tables."""

    def part(found: re.Match[str]) -> str:
        rows = "\n".join(TABLES[found[1]]())
        return f"<!-- table of {found[1]} -->\n{rows}\n<!-- end -->"

    return _PART.sub(part, text)


if __name__ == "__main__":
    for document in DOCUMENTS:
        document.write_text(renewed(document.read_text("utf-8")), "utf-8")
