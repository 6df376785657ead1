"""Fuzzes the running product: malformed input of every kind must not break it.

`make fuzz` runs for a given time; `tests/dev/test_fuzz_*.py` run a fixed part.
"""
