"""Damage done by hand to a store that has data of every kind."""
