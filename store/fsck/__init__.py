"""A check of a whole store beside the servers that use it: every invariant is looked at, none is taken for granted."""
