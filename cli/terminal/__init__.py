"""Output for people at a terminal: help and errors, tables, progress."""
