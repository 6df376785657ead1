"""Checks of `make lint` beyond style and types: locked packages, secrets, the shape of the tree."""
