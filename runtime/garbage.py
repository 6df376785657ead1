"""How often Python collects garbage that reference counting leaves."""

from __future__ import annotations

import gc

# More objects than all requests in progress have. A call of the API leaves no cycles, but with Python's default the
# objects of requests in progress trigger a collection every few calls, which takes a tenth of all time. Templates leave
# some hundreds of objects in cycles for each page, so a much larger value would cause long pauses.
YOUNG = 10_000


def settle() -> None:
    """Call this when a process is ready to serve. Later collections skip the objects that exist by then."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)
