"""The declaration of a security event."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Trail = Literal["security", "ordinary", ""]
Severity = Literal["info", "warning"]
Result = Literal["ok", "refused", "failed"]
Actor = Literal["person", "app", "operator", "server"]
EventStream = Literal["strangers", "people", "sensitive", "operator"]
Counted = Literal["", "by_person", "by_place", "by_app", "by_cause"]


@dataclass(frozen=True, slots=True)
class Declared:
    """An event: its name, and the sentence that people read.

    `stream`: what writing the event takes. `strangers`: nothing. `people`: an account. `sensitive`: an account and more
    than a click; these are the warnings, and changes to how a person signs in. `operator`: the operator's access.
    `counted`: whether repetitions become one event with a count, and how they are grouped: by person, by person and
    place, by person and app, or by cause. `store/accounts/audit/security_log.py` bounds the groups of one person.
    `severity`: somebody should look into a warning. `trail`: the trail of the person's activity with the event, or ""
    for an event of the security log alone. `logged`: whether the security log has the event. `actor`: who causes it.
    `detail`: the meaning of the log's field of that name. `varies`: the detail has countless values, such as an amount,
    so repetitions with different details are counted together. `result`: how the attempt ended.
    """

    name: str
    sentence: str
    detail: str = ""
    varies: bool = False
    stream: EventStream = "people"
    counted: Counted = "by_person"
    severity: Severity = "info"
    trail: Trail = "security"
    logged: bool = True
    actor: Actor = "person"
    result: Result = "ok"
