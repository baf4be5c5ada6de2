"""How XLA compiles the programs of jobs: the value of the environment variable XLA_FLAGS.

XLA reads no flag that follows a word without leading dashes. Standard library only, so that a
Snakefile and the set-up of tests can use it.
"""

import platform

X86 = " --xla_cpu_max_isa=AVX2" if platform.machine() in ("x86_64", "AMD64") else ""
STEADILY = f"--xla_cpu_multi_thread_eigen=false --xla_backend_optimization_level=1{X86}"
"""A job has one thread, so that sums do not depend on the number of cores, and no instructions that
only some x86 processors have, since they round otherwise. Level 1 of LLVM compiles in four fifths
of the time of XLA's own choice, and fits take no longer."""

QUICKLY = f"{STEADILY} --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false"
"""Compiles in half the time, for programs that run for less than they compile. A long fit is better
off without: without XLA's fusion emitters, a fit of tables takes twice the time. Level 0 would
compile in a third of the time, but programs then run for two to six times as long."""
