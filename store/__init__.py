"""The store: the only code that knows Redis."""
