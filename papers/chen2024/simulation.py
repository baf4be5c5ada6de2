"""Numbers of the authors' simulation (their click_model.json)."""

from __future__ import annotations

import numpy as np

POSITIONS = 10
EXAMINATION = np.array([0.68, 0.61, 0.48, 0.34, 0.28, 0.20, 0.11, 0.10, 0.08, 0.06])
"""By position."""
WEIGHTS = np.array(
    [
        -0.13390555877443555,
        0.1988461661157539,
        -0.026005814485797307,
        -0.14176620063529133,
        -0.38422296795127564,
        0.06025565950422718,
        -0.35635814410370004,
        0.5520136349350745,
        0.6957929543729735,
        -0.46464952897752965,
    ]
)
"""w of Appendix C.2."""
