"""The settings of a process: `declared.py` declares them, `reading.py` reads them."""
