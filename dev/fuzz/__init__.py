"""Fuzzes the running product: malformed input of every kind must not break it.

`make fuzz` runs for a chosen time; `tests/dev/test_fuzz_*.py` run a fixed part of it.
"""
