"""Calls of the store, prepared so that each succeeds: `every.py` has them all."""
