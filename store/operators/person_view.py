"""One person, as operators see them."""

from __future__ import annotations

from dataclasses import dataclass

from store.accounts.signin.signin_methods import Security
from store.operations import Person
from store.operators.people_pages import PersonSummary
from store.operators.roles import OperatorRole


@dataclass(frozen=True, slots=True)
class PersonView:
    """A person with groups, apps and newest activity; their ways to sign in; their role."""

    summary: PersonSummary
    person: Person
    security: Security
    role: OperatorRole | None
