"""Commands that tests run."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence


def ran(command: Sequence, **options) -> subprocess.CompletedProcess[str]:
    """A command that has ended, and what it said; `options` are those of `subprocess.run`."""
    return subprocess.run(command, capture_output=True, text=True, **options)
