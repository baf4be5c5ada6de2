# Builds every item of every paper, the claims, and the pages that show them.
import atexit
import os
import sys
import time

from snakemake.utils import min_version

min_version("9.0")

sys.path.insert(0, workflow.basedir)

from scripts.runner import PRELOADED
from twotowers.splits import ANNOTATIONS, DOCUMENTS, IDS, LOG, PAGES, SPLITS
from twotowers.workflow.compiling import QUICKLY, STEADILY
from twotowers.workflow.plan import read_plan
from twotowers.workflow.preloaded import start as start_preloaded
from twotowers.workflow.provenance import code_version
from twotowers.workflow.records import failures


configfile: "config.yaml"


# The plan has the files, inputs and parameters of all jobs; rules only declare.
FILES = dict.fromkeys(["config.yaml", *map(str, workflow.configfiles)])
PLAN = read_plan(config, root=workflow.basedir, files=FILES)
VERSION = code_version(PLAN.root)
STARTED = time.time()

# Jobs inherit these variables. None of them changes what is computed.
os.environ.setdefault("PYTHONHASHSEED", "0")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", os.path.abspath(".cache/jax"))
# Small programs are cached, too: compiling dozens of them takes a third of a short fit.
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
# Each job has one thread. Jobs run side by side, and sums do not depend on the number of cores.
os.environ.setdefault("XLA_FLAGS", QUICKLY if config["scale"] == "smoke" else STEADILY)
for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ.setdefault(variable, "1")
os.environ.update(
    PYTHONPATH=workflow.basedir,
    # The size of XLA's thread pool also decides how programs are cut into parallel parts. Without
    # it the last digits of a fit would depend on the number of cores.
    NPROC="1",
    # Jobs whose resources name a GPU change this: twotowers.workflow.devices.
    JAX_PLATFORMS="cpu",
)


onstart:
    # Snakemake's limit of jobs per second has a timer for every job that ended, and each asks all
    # ready jobs every second: up to a tenth of a core. Local jobs need no limit.
    if workflow.local_exec:
        workflow.scheduler.job_rate_limiter = None
        # Jobs in environments of their own would not ask it.
        if not workflow.deployment_settings.deployment_method:
            start_preloaded(PRELOADED, workflow.cores)


wildcard_constraints:
    dataset="[^/]+",
    split="|".join([*SPLITS, LOG, PAGES, DOCUMENTS, ANNOTATIONS, IDS]),
    paper="[^/]+",
    seed=r"\d+",


rule all:
    default_target: True
    input:
        PLAN["targets"],
    message:
        "Everything is made"


include: "rules/datasets.smk"
include: "rules/policies.smk"
include: "rules/clicks.smk"
include: "rules/fits.smk"
include: "rules/items.smk"
include: "rules/report.smk"


# The last line of a run.
onsuccess:
    made = PLAN["targets"] if config["only"] else [PLAN.file("overview")]
    atexit.register(print, f"Open {' '.join(made)}", flush=True)


# Failures are listed again at the end, since with keep-going they may be far up.
onerror:
    for path, cause in failures(f"{PLAN.results}/logs", since=STARTED):
        print(f"failed: {cause} (log: {path})", file=sys.stderr)
