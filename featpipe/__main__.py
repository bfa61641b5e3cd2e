"""``python -m featpipe``: the same as the ``featpipe`` command."""

from featpipe.cli.main import main

if __name__ == "__main__":
    main()
