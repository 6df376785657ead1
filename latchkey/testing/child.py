"""The start of a test run's child process. `child.py PARENT FOLDER TREE OPTIONS…` runs `server.py OPTIONS…` of the
tree. The process ends, and removes its folder, as soon as its parent is gone for any reason."""

from __future__ import annotations

import os
import runpy
import shutil
import signal
import sys
import threading
import time

LOOKED_AT_EVERY = 0.25
"""Seconds."""


def follow(parent: int, folder: str) -> None:
    """Ends this process once its parent is gone. It doesn't drain, because the store ends with it."""
    while os.getppid() == parent:
        time.sleep(LOOKED_AT_EVERY)
    shutil.rmtree(folder, ignore_errors=True)
    os.kill(os.getpid(), signal.SIGKILL)


def main() -> None:
    """Runs the server in this process."""
    parent, folder, tree, *options = sys.argv[1:]
    threading.Thread(target=follow, args=(int(parent), folder), daemon=True).start()
    # Replace the folder of this file with the application's, before any foreign `settings` or `store`.
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [tree, *(place for place in sys.path if os.path.abspath(place) != here)]
    program = os.path.join(tree, "server.py")
    sys.argv = [program, *options]
    runpy.run_path(program, run_name="__main__")


if __name__ == "__main__":
    main()
