"""`python -m settings` prints docs/settings.md."""

from settings import document

print(document(), end="")
