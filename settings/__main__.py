"""`python -m settings` prints docs/settings.md."""

from settings.declared import SETTINGS
from settings.page import rendered

print(rendered(SETTINGS), end="")
