"""`python -m twotowers` is the command `twotowers`."""

import sys

from twotowers.commands.main import main

sys.exit(main())
