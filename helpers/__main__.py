"""`python -m helpers`, in a checkout: the same as the command `stuck-ranks`."""

import sys

from .cli.main import main

if __name__ == "__main__":
    sys.exit(main())
