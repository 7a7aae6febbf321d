"""``python -m diptych`` is ``diptych``."""

from diptych.cli import main

if __name__ == "__main__":
    main()
