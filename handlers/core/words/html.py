"""Escaping of pages: everything is escaped, but for HTML that our own code made.

Tornado encodes a value before it calls the function that escapes it, and the type of a text is lost. `encoded`
takes the place of Tornado's encoder, and marks what needs no escaping.
"""

from __future__ import annotations

import re
from typing import Any

from tornado.escape import utf8, xhtml_escape

AUTOESCAPE = "shown"
"""The name of `shown` in templates, for the option `autoescape` of their loader."""
_HYPHEN = re.compile("-+[a-zA-Z0-9]")
_JOINT = re.compile(r"(?<=[^/:])(?=/[^/])|(?<=\w)(?=[.@?&=]\w)")


class Html(str):
    """HTML that is shown as is: a message of the catalogue whose values are escaped. Everything made from it with
    methods of `str` is a plain text, which is escaped."""

    __slots__ = ()

    # Python's own return this very object where there is nothing to put in.

    def __mod__(self, values: Any) -> str:
        """A plain text."""
        return str.__mod__(str(self), values)

    def format(self, *args: object, **kwargs: object) -> str:
        """A plain text."""
        return str(self).format(*args, **kwargs)

    def format_map(self, mapping: Any, /) -> str:
        """A plain text."""
        return str(self).format_map(mapping)


def unbroken(host: str) -> Html:
    """A host name whose line doesn't end at a hyphen: a part of an address could pass for the whole."""
    return Html(_HYPHEN.sub(r'<span class="whole">\g<0></span>', xhtml_escape(host)))


def parted(address: str) -> Html:
    """An address, or a text with addresses, whose lines end at the joints of an address rather than within a word: the
    next line begins with the slash, dot or other sign."""
    return Html("<wbr>".join(xhtml_escape(part) for part in _JOINT.split(address)))


class _Encoded(bytes):
    """HTML of ours, encoded."""

    __slots__ = ()


def encoded(value: Any) -> bytes:
    """A value of a template as UTF-8. Raises TypeError for what is neither text nor bytes, as Tornado's function."""
    if type(value) is Html:
        return _Encoded(value.encode())
    found: bytes = utf8(value)
    return found


def shown(value: str | bytes) -> str | bytes:
    """A value of a template, escaped for a page unless it is HTML of ours."""
    return value if type(value) is _Encoded else xhtml_escape(value)
