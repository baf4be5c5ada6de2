"""Draw and count: `python -m benchmarks.validate STUDY [--draws N] [--cases CASE ...]`.

The results of a case replace those of its last run in `benchmarks/results`; other cases keep
theirs. Then the tables of the pages are filled. `pages` fills them without a run.
"""

import argparse
import multiprocessing
import os
from itertools import product

# As in the commands. A draw's matrices are small, and two threads would wait for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import pandas as pd

from benchmarks.validate import (
    alarms,
    coverage,
    feedback,
    learning,
    realistic,
    usefulness,
    verdicts,
)
from benchmarks.validate.study import Study
from scripts.filling import fill_page
from twotowers.files.artefacts import atomic

MODULES = (coverage, alarms, feedback, learning, realistic, usefulness, verdicts)
STUDIES: dict[str, Study] = {
    name: study for module in MODULES for name, study in module.STUDIES.items()
}


def run(study: Study, cases: list[str], draws: int, processes: int) -> None:
    """Run a study, and write its results after every case."""
    tables = {}
    if study.path.exists():
        before = study.table().groupby(study.key, sort=False)
        tables = {str(case): rows for case, rows in before}
    with multiprocessing.get_context("spawn").Pool(processes) as pool:
        for case in cases:
            jobs = product([case], range(study.first, study.first + draws))
            rows = [row for each in pool.starmap(study.draw, jobs) for row in each]
            tables[case.partition("=")[0]] = study.summary(pd.DataFrame(rows))
            with atomic(study.path) as temporary:
                table = pd.concat(tables.values())
                table.to_csv(temporary, index=False, float_format="%.5g", lineterminator="\n")
            print(case, tables[case.partition("=")[0]].round(3).to_string(index=False), flush=True)


def measured() -> list:
    """The modules whose studies all have results."""
    return [m for m in MODULES if all(study.path.exists() for study in m.STUDIES.values())]


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", choices=[*STUDIES, "pages"])
    parser.add_argument("--draws", type=int, help="of each case")
    parser.add_argument("--cases", nargs="+", help="all, unless some are named")
    parser.add_argument("--processes", type=int, default=1)
    options = parser.parse_args(arguments)
    if options.study != "pages":
        study = STUDIES[options.study]
        cases = options.cases or list(study.cases)
        run(study, cases, options.draws or study.draws, options.processes)
    for module in measured():
        for page, tables in module.tables().items():
            fill_page(page, tables)


if __name__ == "__main__":
    main()
