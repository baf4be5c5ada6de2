# What is built: every item of every paper, the claims, and the page that shows them.
import os
import sys
import time

from snakemake.utils import min_version

min_version("9.0")

sys.path.insert(0, workflow.basedir)

from twotowers import LOG, SPLITS
from twotowers.running.experiments import check_config, load_experiment, seed_range
from twotowers.running.joblogs import failures
from twotowers.running.processes import RUN, only_run
from twotowers.running.provenance import code_digest, code_version


configfile: "config.yaml"


include: "rules/common.smk"


check_config(config)
EXPERIMENTS = {key: load_experiment(key, config) for key in config["papers"]}
RESULTS = f"{config['results']}/{config['scale']}"
FIGURES = config["figures"]
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
    only_run(config["results"], FIGURES)
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
        f"{FIGURES}/index.html",
        f"{FIGURES}/claims.csv",
        # Of the page alone nothing would be made again that was deleted.
        lambda wildcards: page_files(),
        f"{FIGURES}/ro-crate-metadata.json",


include: "rules/datasets.smk"
include: "rules/policies.smk"
include: "rules/clicks.smk"
include: "rules/needs.smk"
include: "rules/fits.smk"
include: "rules/shown.smk"
include: "rules/items.smk"
include: "rules/report.smk"


# Whatever went wrong, once more at the end: with keep-going it may be far up.
onerror:
    for path, cause in failures(f"{RESULTS}/logs", since=STARTED):
        print(f"failed: {cause} (log: {path})", file=sys.stderr)
