"""``python -m unmeasured`` is the command ``unmeasured``."""

from unmeasured.cli import main

if __name__ == "__main__":
    main()
