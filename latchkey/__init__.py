"""Latchkey, as it is installed: where its application is, and which version.

The application's modules (`server`, `store`, `handlers` …) are not importable from here: their names belong to whoever
imports this package. A process of Latchkey's own puts `tree()` on its path first.
"""

from __future__ import annotations

from pathlib import Path

__all__ = ["__version__", "tree"]

__version__ = "0.1.0"


def tree() -> Path:
    """The folder of the application: what a wheel brings with it, else the checkout that this package stands in."""
    here = Path(__file__).resolve().parent
    installed = here / "_app"
    return installed if installed.is_dir() else here.parent
