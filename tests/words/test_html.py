"""Escaping of pages: nothing but messages of the catalogue is shown unescaped."""

from __future__ import annotations

from typing import Any

import pytest
from tornado.template import DictLoader

from handlers.core.words.html import AUTOESCAPE, Html
from handlers.core.words.languages import shipped
from handlers.core.words.wording import Wording
from runtime.http.tornado_private import ENCODER
from store.phrases import Phrase, plural

HOSTILE = "<b>\"'&"
ESCAPED = "&lt;b&gt;&quot;&#x27;&amp;"


def page(template: str, **values: Any) -> str:
    """What a template of pages makes of these values."""
    loader = DictLoader({"page.html": template}, autoescape=AUTOESCAPE)
    return loader.load("page.html").generate(**Wording(shipped().default).names(), **values).decode()


def test_html_passes_and_text_is_escaped() -> None:
    assert page("{{ html }}|{{ text }}", html=Html("<b>ok</b>"), text=HOSTILE) == f"<b>ok</b>|{ESCAPED}"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        pytest.param(HOSTILE.encode(), ESCAPED, id="bytes"),
        pytest.param(["<"], "[&#x27;&lt;&#x27;]", id="list"),
        pytest.param(12, "12", id="number"),
        pytest.param(Html("<") + "<", "&lt;&lt;", id="sum"),
        pytest.param(f"{Html('<')}", "&lt;", id="formatted"),
        pytest.param("".join([Html("<")]), "&lt;", id="joined"),
        pytest.param(str(Html("<")), "&lt;", id="str"),
        pytest.param(Phrase(HOSTILE), ESCAPED, id="message"),
        pytest.param(Phrase("%(x)s", x=Html("<")), "&lt;", id="HTML in a plain message"),
        pytest.param(type("Markup", (Html,), {})("<"), "&lt;", id="subclass"),
    ],
)
def test_everything_else_is_escaped(value: object, shown: str) -> None:
    assert page("{{ value }}", value=value) == shown


_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "join": (["<", "<"],),
    "replace": ("a", "b"),
    "removeprefix": ("<",),
    "removesuffix": (">",),
    "translate": ({},),
    "format_map": ({},),
    "__add__": ("<",),
    "__mod__": ((),),
    "__mul__": (1,),
    "__rmul__": (1,),
    "__getitem__": (slice(None),),
    "__format__": ("",),
    **dict.fromkeys(("center", "ljust", "rjust", "zfill"), (1,)),
}
_MADE_ANEW = {"__new__", "__init_subclass__", "__class__", "__subclasshook__"}


def test_no_method_of_str_makes_html() -> None:
    """What is made of HTML may have lost a tag, or got a stranger's text."""
    html, tried = Html("<a>"), 0
    for name in dir(str):
        if name in _MADE_ANEW or not callable(getattr(html, name)):
            continue
        try:
            made = getattr(html, name)(*_ARGUMENTS.get(name, ()))
        except TypeError:
            continue
        parts = made if isinstance(made, (tuple, list)) else [made]
        tried += sum(isinstance(part, str) for part in parts)
        assert not any(isinstance(part, Html) for part in parts), name
    assert tried > 30


def test_a_template_without_the_names_of_a_wording_shows_nothing() -> None:
    loader = DictLoader({"page.html": "{{ text }}"}, autoescape=AUTOESCAPE)
    with pytest.raises(NameError):
        loader.load("page.html").generate(text="<")


def test_values_of_messages_are_escaped_and_the_message_is_not() -> None:
    template = '{{ _("Go to <strong>%(where)s</strong>, %(html)s", where=where, html=html) }}'
    assert page(template, where=HOSTILE, html=Html("<i>")) == f"Go to <strong>{ESCAPED}</strong>, <i>"
    template = '{{ _n("<b>%(count)s</b> %(what)s", "<b>%(count)s</b> %(what)s!", 12000, what=what) }}'
    assert page(template, what=HOSTILE) == f"<b>12,000</b> {ESCAPED}!"


def test_messages_keep_their_english_everywhere_else() -> None:
    message = Phrase("Up to %(most)s %(what)s", most=5, what=Phrase("letters"))
    assert (str(message), f"{message}", message == "Up to 5 letters") == ("Up to 5 letters", "Up to 5 letters", True)
    assert plural("%(count)s byte", "%(count)s bytes", 1) == "1 byte"
    assert plural("%(count)s byte", "%(count)s bytes", 3) == "3 bytes"


def test_the_encoder_has_the_name_that_tornado_calls() -> None:
    loader = DictLoader({"page.html": "{{ text }}"}, autoescape=AUTOESCAPE)
    assert f"{ENCODER}({AUTOESCAPE}(_tt_tmp))" in loader.load("page.html").code
