"""The classes of security events: which repetitions become one event with a count, and their bounds."""

from __future__ import annotations

from functools import partial
from typing import Final

from store.accounts.audit.gathering import Gathering
from store.accounts.audit.logged_event import AuditEvent
from store.events.declared_event import Counted, Declared, EventStream

SHORT_SECONDS: Final = 10.0
"""Repetitions by strangers within this time are one event with a count."""
LONG_SECONDS: Final = 3600.0
"""The same for people's and sensitive events. The first ones of each window are logged one by one:"""
PEOPLE_SINGLES: Final = 3
SENSITIVE_SINGLES: Final = 5
MOST_CAUSES: Final = 100
"""Causes of strangers' events that are distinguished at once: a flood makes at most twice this number of events in
`SHORT_SECONDS`, from however many addresses it comes."""
MOST_ACTS: Final = 5_000
"""The same for acts of people, for each class in `gatherings`. A further cause ends the oldest window early."""
MOST_OF_ONE: Final = 10
"""Causes of one person's refused calls, by app and script, that are distinguished in `LONG_SECONDS`: a person may have
dozens of apps. Beyond `MOST_ACTS` of all people, a refused call is counted without its person."""
MOST_PLACES: Final = 5
"""The same for a person's sign-ins of one kind, by network and browser."""
MOST_APPS: Final = 5
"""The same for a person's replays of one kind, by app."""
MOST_OF_A_PERSON: Final[dict[EventStream, int]] = {"people": 280, "sensitive": 310}
"""Events of one person in `LONG_SECONDS` from the first, in a process: the sum over all kinds. Each kind has its own
bound, since with a common one somebody could hide an event behind noise of other kinds."""


def gatherings() -> dict[tuple[EventStream, Counted], Gathering]:
    """The windows of each class of events. Each class has its own table, so a flood of one class ends no window of
    another."""
    people = partial(Gathering, singles=PEOPLE_SINGLES, seconds=LONG_SECONDS, causes=MOST_ACTS)
    sensitive = partial(Gathering, singles=SENSITIVE_SINGLES, seconds=LONG_SECONDS, causes=MOST_ACTS)
    return {
        ("strangers", "by_cause"): Gathering(singles=1, seconds=SHORT_SECONDS, causes=MOST_CAUSES, lumps=True),
        ("people", "by_person"): people(),
        ("people", "by_place"): people(of_one=MOST_PLACES),
        ("people", "by_cause"): people(singles=1, lumps=True, of_one=MOST_OF_ONE),
        ("sensitive", "by_person"): sensitive(),
        ("sensitive", "by_app"): sensitive(of_one=MOST_APPS),
    }


def cause_of(event: AuditEvent, declared: Declared, network: str) -> tuple[str, ...]:
    """The parts of an event's cause, the person or network first. A person may have dozens of apps, so the cause of
    most acts is the person and the detail: a count for each app would bound too little."""
    detail = "" if declared.varies else event.detail
    if declared.counted == "by_person":
        return (event.person, detail)
    if declared.counted == "by_place":
        return (event.person, detail, network, event.agent)
    return (event.person or network, detail, event.client)
