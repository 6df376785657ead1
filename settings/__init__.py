"""The settings of a process: `declared.py` has them all, `reading.py` reads them."""
