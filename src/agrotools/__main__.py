"""``python -m agrotools``: the command line, of the Python that is named."""

from agrotools.cli.main import main

if __name__ == "__main__":
    main()
