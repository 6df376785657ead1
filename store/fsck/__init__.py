"""A check of a whole store while servers use it: it verifies every invariant."""
