"""Pages of docs/ as parts that the portal can show.

Text, code, lists, tables and links are rendered, and all of it is escaped. HTML and pictures in a page are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from handlers.guides.guide_values import INLINE, Fill

DOCS = Path(__file__).resolve().parent.parent.parent / "docs"
HTTP_PAGE = "/docs"
"""Where this server describes its HTTP interface."""
_HTTP = "the HTTP interface"
_HEADING = 3  # tokens
_NO_ANCHOR = re.compile(r"[^\w\- ]")

GuideTokens = Sequence[Token]


@dataclass(frozen=True, slots=True)
class GuidePart:
    """A part that is a page of its own. `slug`: its name in addresses, empty for the first part; `title`: its heading,
    empty for the first; `anchors`: the headings that links can name."""

    slug: str
    title: str
    tokens: GuideTokens
    anchors: frozenset[str]


@dataclass(frozen=True, slots=True)
class GuidePage:
    """A page of docs/ in its parts. `anchors`: the slug of the part with each heading."""

    parts: tuple[GuidePart, ...]
    anchors: Mapping[str, str]

    def part(self, slug: str) -> GuidePart | None:
        """The part of this name."""
        return next((part for part in self.parts if part.slug == slug), None)


@dataclass(frozen=True, slots=True)
class Showing:
    """How a part is shown. `fill` puts values into a text; `leads_to` gives the address of a link, or "" for plain
    text. The others are labels of a numbered block."""

    fill: Fill
    leads_to: Callable[[str], str]
    code_label: Callable[[int], str]
    copy_label: Callable[[int], str]
    table_label: Callable[[int], str]


def anchor_of(heading: str) -> str:
    """The fragment of links to a heading, as code hosts make it."""
    return _NO_ANCHOR.sub("", heading.lower()).replace(" ", "-")


def guide_page(name: str, *, parted: bool) -> GuidePage:
    """The page `docs/<name>.md`, as `page_of` gives it. Blocks for some 20 ms."""
    return page_of((DOCS / f"{name}.md").read_text("utf-8"), parted=parted)


def page_of(text: str, *, parted: bool) -> GuidePage:
    """A page, which begins with its heading. With `parted` the first section is a part, each later section another, and
    each subsection too, after the introduction of its section."""
    tokens = _markdown().parse(text)[_HEADING:]
    parts = tuple(_parts(tokens)) if parted else (_part("", tokens),)
    return GuidePage(parts, {anchor: part.slug for part in reversed(parts) for anchor in part.anchors})


def shown_part(part: GuidePart, showing: Showing) -> str:
    """The HTML of a part."""
    parser = _markdown()
    html: str = parser.renderer.render(part.tokens, parser.options, {"state": _State(showing)})
    return html


def _parts(tokens: GuideTokens) -> Iterator[GuidePart]:
    head, (_, first), *sections = _split(tokens, "h2")
    yield _part("", [*head[1], *first])
    for title, section in sections:
        (_, introduction), *below = _split(section, "h3")
        if not below:
            yield _part(title, section[_HEADING:])
        for heading, rest in below:
            yield _part(heading, [*introduction[_HEADING:], *rest[_HEADING:]])


def _part(title: str, tokens: GuideTokens) -> GuidePart:
    own = {anchor_of(title)} if title else set()
    headings = {anchor_of(words) for tag in ("h2", "h3") for words, _ in _split(tokens, tag)[1:]}
    return GuidePart(anchor_of(title), title, tokens, frozenset(own | headings))


def _split(tokens: GuideTokens, tag: str) -> list[tuple[str, GuideTokens]]:
    """What is before the first heading of this kind, then each heading's words with all up to the next."""
    starts = [at for at, token in enumerate(tokens) if token.type == "heading_open" and token.tag == tag]
    ends = pairwise([*starts, len(tokens)])
    return [("", tokens[: starts[0] if starts else None]), *((_words(tokens[a + 1]), tokens[a:b]) for a, b in ends)]


def _words(inline: Token) -> str:
    return "".join(child.content for child in inline.children or () if child.type in ("text", "code_inline"))


class _State:
    """What is known while a part is rendered: the number of the last code block and table, and the open links."""

    def __init__(self, showing: Showing) -> None:
        self.showing, self.codes, self.tables, self.links = showing, 0, 0, list[str]()


class _GuideHtml(RendererHTML):
    """Renders tokens by the rules of a page of ours. Methods are named as the kinds of tokens."""

    def text(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        state, text = env["state"], tokens[idx].content
        if state.links and text.endswith(".md"):
            text = _HTTP if state.links[-1] == HTTP_PAGE else f"docs/{text}"
        return escapeHtml(state.showing.fill(text, ""))

    def code_inline(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<code>{escapeHtml(env['state'].showing.fill(tokens[idx].content, INLINE))}</code>"

    def fence(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        state = env["state"]
        state.codes += 1
        showing, code = state.showing, state.showing.fill(tokens[idx].content, tokens[idx].info.strip())
        label, copy = (escapeHtml(words(state.codes)) for words in (showing.code_label, showing.copy_label))
        return (
            f'<pre class="document" tabindex="0" role="group" aria-label="{label}" data-copy="{copy}">'
            f"{escapeHtml(code)}</pre>\n"
        )

    def heading_open(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return f'<{tokens[idx].tag} id="{escapeHtml(anchor_of(_words(tokens[idx + 1])))}">'

    def link_open(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        address = env["state"].showing.leads_to(str(tokens[idx].attrGet("href") or ""))
        env["state"].links.append(address)
        return f'<a href="{escapeHtml(address)}">' if address else ""

    def link_close(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</a>" if env["state"].links.pop() else ""

    def table_open(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        env["state"].tables += 1
        label = escapeHtml(env["state"].showing.table_label(env["state"].tables))
        return f'<div class="scroll" tabindex="0" role="region" aria-label="{label}"><table>\n'

    def table_close(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return "</table></div>\n"

    def th_open(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return '<th scope="col">'

    def _dropped(self, tokens: GuideTokens, idx: int, options: OptionsDict, env: EnvType) -> str:
        return ""

    html_block = html_inline = image = _dropped


@cache
def _markdown() -> MarkdownIt:
    # HTML is parsed, so that it can be dropped whole; the renderer has no rule that lets it pass.
    options: dict[str, Any] = {"html": True}
    return MarkdownIt("commonmark", options, renderer_cls=_GuideHtml).enable("table")
