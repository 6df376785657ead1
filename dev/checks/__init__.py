"""Checks of `make lint` other than style and types: locked packages, secrets, the shape of the tree."""
