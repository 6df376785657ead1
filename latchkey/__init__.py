"""The installed package Latchkey: the folder of its application, and its version.

The application's modules (`server`, `store`, `handlers` …) can't be imported from here, because their names belong to
whoever imports this package. Latchkey's own processes first put `tree()` on their path.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["__version__", "tree"]

__version__ = "0.1.0"


def tree() -> Path:
    """The folder of the application: in the wheel, or else in the checkout of this package."""
    here = Path(__file__).resolve().parent
    installed = here / "_app"
    return installed if installed.is_dir() else here.parent
