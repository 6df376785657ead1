"""How often Python looks for garbage that reference counting leaves."""

from __future__ import annotations

import gc

# More objects than the requests have that are in flight at once. A call of the API leaves no cycle behind, but by
# default those in flight set off a collection every few calls, for a tenth of all the time. A page leaves some hundreds
# of objects, by the way that templates run: many more than these would stop the process for long when they are freed.
YOUNG = 10_000


def settle() -> None:
    """To be called when a process is ready to serve: what there is by then stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)
