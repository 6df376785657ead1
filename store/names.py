"""Names of people, apps and scopes: each has one normal form, made where the name enters."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

import idna

from store.phrases import Phrase

MAX_EMAIL_BYTES = 254
MAX_LOCAL_PART_BYTES = 64
MAX_NAME_LENGTH = 100
MAX_TYPED_NAME_LENGTH = 4 * MAX_NAME_LENGTH
"""Code points of a name before it is normalised. Some keyboards send a letter and its marks apart: Vietnamese takes up
to three code points for one, Hangul too. Without a bound, normalising 32,000 marks in a row takes seconds."""
MOST_MARKS = 8
"""Combining marks in a row; no script needs more."""

SCOPES = (
    *("openid", "profile", "email", "groups", "credits:read", "credits:spend", "apps:read", "data:read", "data:write"),
)
"""All scopes (SPEC 2.4; OpenID Connect Core 5.4), in the order that people and token responses see."""
ADVERTISED = tuple(scope for scope in SCOPES if scope != "groups")
"""The scopes in metadata. Some clients request all of these, and few apps are registered for `groups`."""
MAX_REASON, MAX_CREDIT_REASON = 500, 200
"""Characters of the reason for a suspension or deletion, and of a note about it."""
MAX_GROUPS = 50
"""The most groups of a person."""
DETAILS_TYPES = ("credits", "llm-inference")
"""The types of authorization details (RFC 9396), in the order of answers."""
DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code"
"""The grant type of devices (RFC 8628 3.4)."""
EXCHANGE_GRANT = "urn:ietf:params:oauth:grant-type:token-exchange"
"""The grant type of delegated tokens (RFC 8693 2.1)."""
ASSERTION_GRANT = "urn:ietf:params:oauth:grant-type:jwt-bearer"
"""The grant type of assertions (RFC 7523 2.1)."""

_LOCAL_ATOM = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+")
_ENCODED_WORD = re.compile(r"=\?.*\?=")
"""What readers of mail headers decode, even inside an address, where it must not be (RFC 2047 5). It may hide a line
break, and so another header."""
_DOMAIN_LABEL = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?")
_PLAIN_EMAIL = re.compile(
    r"([A-Za-z0-9_-]+(?:[.+][A-Za-z0-9_-]+)*)@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)*"
    r"[A-Za-z](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"
)
"""Most addresses: they only become lower case."""
_CLIENT_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SCOPE = re.compile(r"[!#-\[\]-~]+(?: [!#-\[\]-~]+)*")

# Joiners are format characters that Persian, Indic scripts and emoji need.
_JOINERS = "\u200c\u200d"
_INVISIBLE_LETTERS = "\u115f\u1160\u3164\uffa0"


class UnknownScope(ValueError):
    """A scope of a valid form that this service does not have; `scope` is its name, cut to 64 characters."""

    def __init__(self, scope: str) -> None:
        self.scope = scope[:64]
        super().__init__(f"There is no scope {self.scope}.")


def normalise_email(text: str) -> str:
    """Return the normal form of an e-mail address: stored, compared and mailed to. Raises ValueError.

    The form is lower case: the local part is case-sensitive by RFC 5321 2.4, but no mail service in use distinguishes
    people by case, and people vary the case they type. The form is NFC, so one address is one string (RFC 6532 3.1),
    and the domain is in ASCII (IDNA 2008, RFC 5891, with the mapping of UTS 46). Quoted local parts and address
    literals are refused, and so are encoded words. A domain of one label, such as `localhost`, is allowed. Lengths are
    bytes of UTF-8 (RFC 5321 4.5.3.1): 64 for the local part, 254 in all.
    """
    text = text.strip()
    if len(text) > MAX_EMAIL_BYTES:  # before any work that grows with the length
        raise ValueError(Phrase("An e-mail address can have at most %(most)s bytes.", most=MAX_EMAIL_BYTES))
    if (plain := _PLAIN_EMAIL.fullmatch(text)) and plain.end(1) <= MAX_LOCAL_PART_BYTES and "=?" not in text:
        return text.lower()
    if text.count("@") != 1:
        raise ValueError(Phrase("An e-mail address must have one @."))
    local, _, domain = unicodedata.normalize("NFC", text).partition("@")
    email = f"{_normalise_local_part(local)}@{_normalise_domain(domain)}"
    if len(email.encode()) > MAX_EMAIL_BYTES:
        raise ValueError(Phrase("An e-mail address can have at most %(most)s bytes.", most=MAX_EMAIL_BYTES))
    return email


def mailbox_of(email: str) -> str:
    """The address whose mailbox probably gets the mails to a normalised address: without a tag behind `+`, as most mail
    services deliver it, and without dots before the @, as Gmail does. Only for limits: other services may give
    addresses that differ in these to different people. A `+` at the start begins no tag: some services name mailboxes
    by phone numbers, and all their people would share one limit."""
    local, _, domain = email.partition("@")
    name = local[0] + local[1:].partition("+")[0]
    return f"{name.replace('.', '')}@{domain}"


def is_user_id(text: str) -> bool:
    """Whether this is a user id, which no e-mail address is."""
    return re.fullmatch(r"[0-9a-f]{32}", text) is not None


def check_person_name(text: str) -> str:
    """Return a person's name in NFC without surrounding space. A name has 1 to 100 characters (code points), all
    visible, and none reorders the text around it. Raises ValueError."""
    return _check_display_name(text, Phrase("A name"))


def same_name(typed: str, name: str) -> bool:
    """Whether a person typed this name, however their keyboard writes it."""
    if len(typed) > MAX_TYPED_NAME_LENGTH:
        return False
    typed, name = (" ".join(unicodedata.normalize("NFKC", text).casefold().split()) for text in (typed, name))
    return typed == name


def check_app_name(text: str) -> str:
    """Return the name of an app or an API under the rules of `check_person_name`. Raises ValueError."""
    return check_person_name(text)


def check_program_name(text: str) -> str:
    """Return a name that a program chose, which nobody vouches for, under the rules of `check_person_name` and without
    stacks of marks: they would cover the lines above and below, and the buttons there. Raises ValueError."""
    name, marks = check_person_name(text), 0
    for char in name:
        marks = marks + 1 if unicodedata.category(char)[0] == "M" else 0
        if marks > MOST_MARKS:
            raise ValueError(f"A name has at most {MOST_MARKS} combining marks in a row.")
    return name


def check_groups(names: Iterable[str]) -> tuple[str, ...]:
    """Return names of groups, each once and under the rules of `check_person_name`, in one order. Raises ValueError,
    also for more than MAX_GROUPS."""
    groups = tuple(sorted({_check_display_name(name, "A group's name") for name in names}))
    if len(groups) > MAX_GROUPS:
        raise ValueError(f"A person has at most {MAX_GROUPS} groups.")
    return groups


def check_client_id(text: str) -> str:
    """Return the client id if it is 1 to 64 characters of [A-Za-z0-9_-]. Raises ValueError."""
    if not _CLIENT_ID.fullmatch(text):
        raise ValueError("A client_id is 1 to 64 letters, digits, hyphens and underscores.")
    return text


def parse_scope(text: str) -> tuple[str, ...]:
    """Return the scopes of a `scope` parameter without repetitions, in the order of SCOPES.

    Raises ValueError for a malformed list (RFC 6749 3.3: printable ASCII names, single spaces between), and its
    subclass UnknownScope for a name that is not in SCOPES.
    """
    if not _SCOPE.fullmatch(text):
        raise ValueError("A scope is a list of names with single spaces between them.")
    names = text.split(" ")
    for scope in names:
        if scope not in SCOPES:
            raise UnknownScope(scope)
    return tuple(scope for scope in SCOPES if scope in names)


def _normalise_local_part(local: str) -> str:
    # Lower-casing can leave NFC.
    local = unicodedata.normalize("NFC", local.lower())
    if not all(map(_is_atom, local.split("."))) or _ENCODED_WORD.search(local):
        raise ValueError(Phrase("The part of the e-mail address before the @ isn't valid."))
    if len(local.encode()) > MAX_LOCAL_PART_BYTES:
        most = MAX_LOCAL_PART_BYTES
        raise ValueError(
            Phrase("The part of an e-mail address before the @ can have at most %(most)s bytes.", most=most)
        )
    return local


def is_domain(text: str) -> bool:
    """Whether a text is a domain name in lower-case ASCII with at least two labels: no IP address, no loopback."""
    labels = text.split(".") if len(text) <= 253 else []
    if len(labels) < 2 or not all(map(_DOMAIN_LABEL.fullmatch, labels)) or labels[-1] == "localhost":
        return False
    return not re.fullmatch(r"[0-9]+|0x[0-9a-f]*", labels[-1])


def _is_atom(text: str) -> bool:
    """RFC 5322 3.2.3 with the letters, marks and digits of RFC 6532; no spaces, controls, invisibles or delimiters."""
    if _LOCAL_ATOM.fullmatch(text):
        return True
    return text != "" and all(
        _LOCAL_ATOM.fullmatch(char) or (not char.isascii() and unicodedata.category(char)[0] in "LMN") for char in text
    )


def _normalise_domain(domain: str) -> str:
    # RFC 5891 5: a domain already in ASCII stays unchanged. Python's own codec implements IDNA 2003, which turns
    # straße.de into another domain, strasse.de.
    try:
        ascii_domain = domain.lower() if domain.isascii() else idna.encode(domain, uts46=True).decode("ascii")
    except UnicodeError:
        ascii_domain = ""
    labels = ascii_domain.split(".")
    if not all(map(_DOMAIN_LABEL.fullmatch, labels)) or labels[-1].isdigit():
        raise ValueError(Phrase("The part of the e-mail address after the @ isn't a valid domain."))
    return ascii_domain


def _check_display_name(text: str, what: str) -> str:
    text = text.strip()
    if text.isascii() and text.isprintable() and 1 <= len(text) <= MAX_NAME_LENGTH:
        return text
    name = unicodedata.normalize("NFC", text) if len(text) <= MAX_TYPED_NAME_LENGTH else ""
    if not 1 <= len(name) <= MAX_NAME_LENGTH:
        raise ValueError(Phrase("%(what)s must have 1 to %(most)s characters.", what=what, most=MAX_NAME_LENGTH))
    if not name.isprintable() and any(_is_hidden(char) for char in name):
        raise ValueError(
            Phrase("%(what)s can't have control characters or characters that change the text direction.", what=what)
        )
    if not any(_is_visible(char) for char in name):
        raise ValueError(Phrase("%(what)s needs a visible character.", what=what))
    return name


def _is_hidden(char: str) -> bool:
    category = unicodedata.category(char)
    return category in ("Zl", "Zp") or (category[0] == "C" and char not in _JOINERS)


def _is_visible(char: str) -> bool:
    return unicodedata.category(char)[0] in "LNPS" and char not in _INVISIBLE_LETTERS


def check_reason(text: str) -> None:
    """Checks the reason for a suspension or deletion, or a note about it. Raises ValueError."""
    if len(text) > MAX_REASON or not text.isprintable():
        raise ValueError(
            Phrase("Reason and note must each be one line of at most %(most)s printable characters.", most=MAX_REASON)
        )


def check_credit_reason(text: str) -> None:
    """Checks the reason of credits that an operator adds or takes. Raises ValueError."""
    if len(text) > MAX_CREDIT_REASON or not text.isprintable():
        raise ValueError(Phrase("The reason can have at most %(most)s printable characters.", most=MAX_CREDIT_REASON))
