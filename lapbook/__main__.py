"""`python -m lapbook`: the commands behind the book's stored results."""

import sys

from lapbook.reproduction.cli import main

if __name__ == "__main__":
    sys.exit(main())
