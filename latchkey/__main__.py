"""`python -m latchkey`: the command `latchkey`."""

import sys

from latchkey.command import main

if __name__ == "__main__":
    sys.exit(main())
