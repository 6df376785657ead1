"""The values of an app in place of the examples in docs/. Never a secret: those are read from the environment there."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from urllib.parse import urlsplit

from store.apps.registration import Registration

Fill = Callable[[str, str], str]
"""Puts values into a text. The second argument is the language of code, and empty for words."""
INLINE = "inline"
"""The language of code in a line."""
BASE_URL = "https://id.example.com"
CLIENT_ID = "9zYkT7bXcQf2LmA"
COMMAND_ID = "CLIENT_ID"
REDIRECT_URI = "https://app.example.com/callback"
WEBHOOK_URL = "https://app.example.com/webhooks"
SCOPE = "profile"
METHOD = "client_secret_basic"
_SECRET_LINE = re.compile(r"^.*\bCLIENT_SECRET\b.*\n", re.MULTILINE)
_SHELL = ("sh", INLINE)
_PROGRAMS = ("latchkey ", "python ")


def filler(app: Registration, base_url: str) -> Fill:
    """Puts the app's values in place of the examples, where the app has some."""
    examples = {
        BASE_URL: base_url,
        CLIENT_ID: app.client_id,
        COMMAND_ID: app.client_id,
        REDIRECT_URI: app.redirect_uris[0],
    }
    if app.webhook_url:
        url = urlsplit(app.webhook_url)
        path = url._replace(scheme="", netloc="").geturl() or "/"
        examples |= {
            WEBHOOK_URL: app.webhook_url,
            f"POST {urlsplit(WEBHOOK_URL).path} HTTP": f"POST {path} HTTP",
            f"Host: {urlsplit(WEBHOOK_URL).netloc}": f"Host: {url.netloc}",
        }
    code = {**examples, f'"{SCOPE}"': json.dumps(_scope(app))}
    if app.public:
        code[f'"{METHOD}"'] = '"none"'
    in_words, in_code = _pattern(examples), _pattern(code)

    def fill(text: str, language: str) -> str:
        if not language or language == INLINE:
            quote = shlex.quote if language in _SHELL and text.startswith(_PROGRAMS) else str
            return in_words.sub(lambda match: quote(examples[match[0]]), text)
        if app.public:
            text = _SECRET_LINE.sub("", text)
        quoted = shlex.quote if language in _SHELL else str
        return in_code.sub(lambda match: quoted(code[match[0]]), text)

    return fill


def _scope(app: Registration) -> str:
    """The app's scopes for plain OAuth; those of OpenID Connect need more than the examples do."""
    return " ".join(scope for scope in app.scopes if scope != "openid") or SCOPE


def _pattern(examples: dict[str, str]) -> re.Pattern[str]:
    # All in one pass: a value that looks like another example stays.
    longest_first = sorted(examples, key=len, reverse=True)
    return re.compile("|".join(rf"(?<![\w/]){re.escape(one)}(?!\w)" for one in longest_first))
