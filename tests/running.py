"""Commands that tests run."""

import subprocess
from collections.abc import Sequence


def ran(command: Sequence, **options) -> subprocess.CompletedProcess[str]:
    """Run a command to its end, and keep what it says; `options` are of `subprocess.run`."""
    return subprocess.run(command, capture_output=True, text=True, **options)
