"""What a query asks the index for: the family, the beginning of the texts, and which rows it means."""

from __future__ import annotations

from dataclasses import dataclass

from store.directory.entries import ADDRESS, DOMAIN, MAX_TEXT, NAME, domain_text, texts_of
from store.directory.folding import MAX_QUERY, fold, words_of
from store.names import is_domain, normalise_email

ANY = "any"
WAYS = (ANY, ADDRESS, NAME, DOMAIN)


@dataclass(frozen=True, slots=True)
class Stage:
    """One walk through a family of the index: all texts that begin with `prefix`; of this `domain`, if there is one."""

    family: str
    prefix: bytes
    domain: str = ""

    def meant(self, email: str, name: str) -> bytes | None:
        """The text under which this walk shows a person, as the index has it; None if the row does not match. Of
        several it is the first, so nobody is shown twice."""
        if self.domain and email.rpartition("@")[2] != self.domain:
            return None
        texts = (one for one in texts_of(self.family, email, name) if one.startswith(self.prefix))
        return min((one[:MAX_TEXT] for one in texts), default=None)


def stages_of(query: str, by: str) -> list[Stage]:
    """The walks that answer a query, one after the other. Raises ValueError for another `by`."""
    if by not in WAYS:
        raise ValueError(f"People are found by {', '.join(WAYS)}.")
    query = query.strip()
    if len(query) > MAX_QUERY or "\0" in query:
        return []
    if by == ADDRESS or (by == ANY and (not query or query.find("@") > 0)):
        return [Stage(ADDRESS, fold(query).encode())]
    if by == DOMAIN or query.startswith("@"):
        return _of_domain(query)
    by_name = [Stage(NAME, " ".join(words_of(query)).encode())]
    if by == NAME:
        return by_name
    return [*by_name, Stage(ADDRESS, fold(query).encode()), *(_of_domain(query) if is_domain(query.lower()) else [])]


def _of_domain(query: str) -> list[Stage]:
    """Everybody at a domain, or the addresses there that begin like this: `example.org`, `alan@example.org`."""
    local, _, typed = query.rpartition("@")
    try:
        domain = normalise_email(f"a@{typed}").rpartition("@")[2]
    except ValueError:
        return []
    return [Stage(DOMAIN, domain_text(domain, fold(local)), domain)]


def exact_address(query: str, by: str) -> str:
    """The normal form of a whole e-mail address; "" for any other query."""
    if by not in (ANY, ADDRESS):
        return ""
    try:
        return normalise_email(query)
    except ValueError:
        return ""
