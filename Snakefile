# What is built: every item of every paper, the claims, and the page that shows them.
import os
import sys
import time
from functools import partial

from snakemake.utils import min_version

min_version("9.0")

sys.path.insert(0, workflow.basedir)

from twotowers import LOG, SPLITS
from twotowers.running.descriptions import crate_data, page_papers, source_note
from twotowers.running.experiments import check_config, load_experiment
from twotowers.running.joblogs import failures
from twotowers.running.plan import FIRST, Plan
from twotowers.running.processes import RUN, only_run
from twotowers.running.progress import read_seconds
from twotowers.running.provenance import code_digest, code_version


configfile: "config.yaml"


check_config(config)
# What all rules declare: which files, from which, in which order.
PLAN = Plan(
    config,
    {key: load_experiment(key, config) for key in config["papers"]},
    root=workflow.basedir,
    seconds=read_seconds()["folders"],
)
# Digest of the code behind a rule, as a parameter: an edit reruns what depends on it.
code = partial(code_digest, root=PLAN.root)
STARTED = time.time()

# Jobs inherit these; all of them are about running well, none about what is computed.
os.environ[RUN] = str(os.getpid())
os.environ.setdefault("PYTHONHASHSEED", "0")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.path.abspath(".cache/jax"))
# Small programs too: a fit has dozens, and compiling them anew takes a third of a short one.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# One thread a job: jobs run side by side, and sums do not depend on the number of cores.
os.environ.setdefault(
    "XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
)
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.update(
    PYTHONPATH=workflow.basedir,
    # The size of XLA's pool of threads. Unlike the flags above it also decides how programs are cut
    # into parallel parts, so without it the last digits of a fit tell how many cores a job saw.
    NPROC="1",
    # A job whose resources name a GPU turns to it: twotowers.running.devices.
    JAX_PLATFORMS="cpu",
)


onstart:
    only_run(config["results"], config["figures"])
    # Snakemake limits jobs a second by timers, one more for every job that ended, each of which
    # asks all ready jobs anew every second: up to a tenth of a core. Local jobs need no limit.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None


wildcard_constraints:
    dataset="[^/]+",
    split="|".join([*SPLITS, LOG]),
    paper="[^/]+",
    seed=r"\d+",


rule all:
    default_target: True
    input:
        PLAN.targets(),
    message:
        "Everything is made"


include: "rules/datasets.smk"
include: "rules/policies.smk"
include: "rules/clicks.smk"
include: "rules/fits.smk"
include: "rules/items.smk"
include: "rules/report.smk"


for path in PLAN.paper_rules():

    include: path


# Whatever went wrong, once more at the end: with keep-going it may be far up.
onerror:
    for path, cause in failures(f"{PLAN.results}/logs", since=STARTED):
        print(f"failed: {cause} (log: {path})", file=sys.stderr)
