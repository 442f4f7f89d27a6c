"""``python -m unmeasured`` is the command ``unmeasured``."""

from unmeasured_command import main

if __name__ == "__main__":
    main()
