"""The numerical core's tests under the kernels of other processors.

OpenBLAS and NumPy choose their kernels by the processor, and each rounds in its own way.
"""

import os
import sys

import numpy as np
import pytest

from tests.running import ran

FEATURES = np._core._multiarray_umath.__cpu_features__
VECTORS = [each for each in np._core._multiarray_umath.__cpu_dispatch__ if FEATURES[each]]
CORE = [f"tests/unit/test_{name}.py" for name in ("conditional", "newton", "em")]


@pytest.mark.parametrize(
    ("kernel", "needed", "vectors"), [("Prescott", "SSE3", False), ("SkylakeX", "AVX512F", True)]
)
def test_the_core_is_right_on_other_processors(kernel, needed, vectors):
    if not FEATURES.get(needed):
        pytest.skip(f"this processor has no {needed}")
    environment = os.environ | {"OPENBLAS_CORETYPE": kernel, "OPENBLAS_NUM_THREADS": "1"}
    if not vectors:
        environment["NPY_DISABLE_CPU_FEATURES"] = " ".join(VECTORS)
    command = [sys.executable, "-m", "pytest", "-q", "-n", "0", "-p", "no:cacheprovider", *CORE]
    done = ran(command, env=environment)
    assert done.returncode == 0, done.stdout[-3000:]
