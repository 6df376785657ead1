"""Fuzzing of the running product: what it is sent is wrong in every way there is, and it must not break.

`make fuzz` runs for as long as it is told; `tests/dev/test_fuzz_*.py` run a part of it that is the same each time.
"""
