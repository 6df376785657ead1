"""How often Python looks for garbage that reference counting leaves."""

from __future__ import annotations

import gc

# Objects that come and go with requests, as many as a loop full of them has. A request leaves no cycle behind; by
# default those in flight alone set off a collection every few requests, for a tenth of all the time.
YOUNG = 50_000


def settle() -> None:
    """To be called when a process is ready to serve: what there is by then stays, and is not looked at again."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 50)
