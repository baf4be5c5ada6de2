"""The pipeline as a user runs it: from nothing to the page, again, after edits, and after a kill.

Most tests share one smoke run. A second one, on one core and killed in between, shows that neither
the number of cores nor a kill changes a byte.
"""

import ast
import csv
import os
import re
import shutil
import signal
import subprocess
import time
from importlib import import_module
from xml.etree import ElementTree

import pytest

from tests.browser import check_page, needs_chromium
from tests.workflow.project import FEW, PAPER, ROOT, SMOKE, Finished, Project, jobs
from twotowers.claims.claims import CONTRADICTED, NOT_TESTABLE, REPRODUCED, UNDECIDED
from twotowers.experiment.paper import Paper
from twotowers.files.yamls import read_yaml
from twotowers.workflow.plan import ENDINGS
from twotowers.workflow.planning import make_plan
from twotowers.workflow.records import read

# One group, so that pytest-xdist gives the shared runs to one worker (--dist loadgroup).
pytestmark = [pytest.mark.workflow, pytest.mark.xdist_group("pipeline")]

PAGES = {f"figures/smoke/{PAPER}/index.html", f"figures/smoke/{PAPER}/summary.json"}
PAGE = {
    "page": {f"figures/smoke/{PAPER}/index.html"},
    "overview": {"figures/smoke/index.html"},
    "all": set(),
}


def item_files(project: Project) -> list[str]:
    """All declared files of the items."""
    return [
        f"{project.figures}/smoke/{project.paper}/{name}.{ending}"
        for name, item in project.smoke.items.items()
        for ending in ENDINGS[item.kind]
    ]


def drawings(paper: Paper, needs: set[str]) -> dict[str, set[str]]:
    """The jobs of the items that need one of the given settings and studies."""
    found = {}
    for name, item in paper.items.items():
        if needs & {*item.needs}:
            first = f"figures/smoke/{PAPER}/{name}.{ENDINGS[item.kind][0]}"
            found.setdefault(item.kind, set()).add(first)
    return found


def with_statement(function: str):
    """Add a harmless statement before the last one of a function's body."""

    def change(text: str) -> str:
        bodies = (n.body for n in ast.walk(ast.parse(text)) if getattr(n, "name", "") == function)
        last = next(bodies)[-1]
        lines = text.splitlines(keepends=True)
        lines.insert(last.lineno - 1, " " * last.col_offset + "assert True\n")
        return "".join(lines)

    return change


# The first run


def test_every_item_is_there(finished):
    check_items(finished.project)


def check_items(project: Project) -> None:
    """Assert that all declared files exist, are sound, and are the only ones."""
    files = item_files(project)
    for name in files:
        path = project.folder / name
        if path.suffix == ".svg":
            assert ElementTree.parse(path).getroot().tag.endswith("svg")
        elif path.suffix == ".pdf":
            assert path.read_bytes().startswith(b"%PDF")
        elif path.suffix == ".csv":
            assert len(path.read_text().splitlines()) > 1, name
        else:
            assert re.match(r"% Data: .*\n(?s:.*)\\begin\{", path.read_text()), name
    there = {str(path.relative_to(project.folder)) for path in figures(project, project.paper)}
    page = f"{project.figures}/smoke/{project.paper}"
    pages = {f"{page}/index.html", f"{page}/summary.json"}
    assert there == {*files, *pages}


def figures(project: Project, folder: str = "") -> list:
    """Files of the figures' folder."""
    paths = (project.folder / project.figures / "smoke" / folder).rglob("*")
    return [path for path in paths if path.is_file()]


def test_every_claim_has_a_verdict(finished):
    check_claims(finished.project)


def check_claims(project: Project) -> None:
    """Assert that every claim of the paper has a verdict, and a reason unless it is reproduced."""
    claims = import_module(f"papers.{project.paper}.claims").CLAIMS
    with (project.folder / project.figures / "smoke" / "claims.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["paper"] == project.paper]
    made = {*project.smoke.items}
    expected = [(project.paper, claim.id) for claim in claims if {*claim.items} <= made]
    assert expected
    assert [(row["paper"], row["claim"]) for row in rows] == expected
    assert {row["verdict"] for row in rows} <= {REPRODUCED, CONTRADICTED, UNDECIDED, NOT_TESTABLE}
    judged = [row for row in rows if row["verdict"] != NOT_TESTABLE]
    assert all(row["measured"] for row in judged)
    assert all(row["reason"] for row in rows if row["verdict"] != REPRODUCED)


@needs_chromium
@pytest.mark.parametrize("page", ["index.html", f"{PAPER}/index.html"])
def test_pages_are_sound(finished, page):
    """On a phone, whose width is the harder one; contract/test_page_browser.py has both."""
    assert check_page(finished.project.folder / "figures" / "smoke" / page, 390) == []


def test_a_paper_s_page_tells_where_it_came_from(finished):
    page = (finished.project.folder / "figures" / "smoke" / PAPER / "index.html").read_text()
    version = finished.project.git("describe", "--always", "--abbrev=12").strip()
    for fact in (version, "smoke", "mslr30k", "stand-in", "2021"):
        assert fact in page
    drawn = (finished.project.folder / "figures" / "smoke" / PAPER / "fig2.svg").read_text()
    assert "Data: generated stand-in for mslr30k. Scale: smoke. Seeds: 2021." in drawn
    paper = finished.project.smoke
    for anchor in (*paper.items, *(f"setting-{name}" for name in paper.settings)):
        assert f'id="{anchor}"' in page


def test_every_jobs_log_says_how_it_ended(finished):
    paper, done = finished.project.smoke, finished.run.jobs
    assert done["fit"] | done["study"] == {
        f"results/smoke/fits/{PAPER}/{need}/{seed}.parquet"
        for need in paper.needs
        for seed in paper.seeds_of(need)
    }
    logs = list((finished.project.folder / "results").rglob("*.log"))
    assert len(logs) == sum(map(len, finished.run.jobs.values()))
    assert {read(log)["outcome"] for log in logs} == {"done"}
    (fit,) = (log for log in logs if log.match("fits/*/fit-linear/2021.log"))
    assert re.search(r" nll of \d+ lanes: 0\.\d+ to 0\.\d+$", fit.read_text(), re.MULTILINE)


def test_a_second_run_does_nothing(finished):
    dates = {path: path.stat().st_mtime_ns for path in figures(finished.project)}
    again = finished.project.snakemake("--cores", "2")
    assert again.code == 0
    assert "Nothing to be done" in again.text
    assert not again.jobs
    assert {path: path.stat().st_mtime_ns for path in figures(finished.project)} == dates


# After edits


def test_editing_a_figures_drawing_redraws_it_and_what_changes_no_result_rebuilds_pages_only(
    finished, tmp_path
):
    """New dates of all files, as of a checkout, another commit, docstrings and comments. Pages
    print the version, and that files differ from the commit."""
    project, now = finished.copy(tmp_path), time.time()
    folder = project.folder
    for name in project.git("ls-files", "-z").split("\0")[:-1]:
        os.utime(folder / name, (now, now))
    dates = {
        path: path.stat().st_mtime_ns for path in folder.glob("figures/**/*") if path.is_file()
    }
    project.git("commit", "--quiet", "--allow-empty", "--message", "Nothing")
    comment, docstring = "twotowers/fitting/gradient.py", "twotowers/files/rankings.py"
    redrawn = {f"figures/smoke/{PAPER}/lemmas.{ending}" for ending in ENDINGS["figure"]}
    with (
        project.edited(comment, lambda text: f"# A comment.\n{text}"),
        project.edited(docstring, lambda text: text.replace('"""', '"""Reworded. ', 1)),
        project.edited(f"papers/{PAPER}/items/lemmas.py", with_statement("draw")),
    ):
        run = project.snakemake("--cores", "2")
        assert run.code == 0, run.text[-5000:]
        assert run.jobs == {"figure": {f"figures/smoke/{PAPER}/lemmas.pdf"}, **PAGE}
    changed = {p for p, date in dates.items() if p.stat().st_mtime_ns != date}
    assert {str(path.relative_to(folder)) for path in changed} == redrawn | {
        *PAGES,
        "figures/index.html",
        "figures/findings.html",
        "figures/smoke/index.html",
        "figures/smoke/claims.csv",
    }
    assert project.digests() == finished.digests


def test_editing_what_only_fits_use_reruns_fits_and_another_seed_adds_its_own_jobs_only(finished):
    def another_seed(text: str) -> str:
        return text.replace("seeds: [2021]\n", "seeds: [2021, 2022]\n", 1)

    done, project = finished.run.jobs, finished.project
    with (
        project.edited("twotowers/jobs/fit.py", with_statement("fit_setting")),
        project.edited(f"papers/{PAPER}/experiment.yaml", another_seed),
    ):
        paper = project.smoke
        plan = project.plan()
    assert paper.seeds == (2021, 2022)
    added = {
        rule: {path.replace("/2021.", "/2022.") for path in done[rule]}
        for rule in ("policy", "clicks", "fit", "study")
    }
    assert plan == {
        **added,
        "fit": done["fit"] | added["fit"],
        **drawings(paper, {*paper.needs}),
        "claims": done["claims"],
        **PAGE,
    }


# Killed in the middle of a fit, on one core, with another order of hashes


FITTED = ("fig2", "appendixA_features")
"""Items that are drawn from fits of each tower."""


@pytest.fixture(scope="module")
def recovered(clean_copy, finished) -> tuple[str, Finished]:
    """The messages of a killed run, and the run after it."""
    project = clean_copy("recovered", items=FEW)
    launcher = ()
    if taskset := shutil.which("taskset"):
        launcher = (taskset, "--cpu-list", str(min(os.sched_getaffinity(0))))
    options = {"launcher": launcher, "PYTHONHASHSEED": "77"}
    targets = [f"figures/smoke/{PAPER}/{item}.csv" for item in FITTED]
    process = project.start("--cores", "1", *targets, **options)
    await_a_fit(project, process)
    os.killpg(process.pid, signal.SIGKILL)
    killed, _ = process.communicate()
    # A killed run leaves Snakemake's lock.
    assert project.snakemake("--unlock").code == 0
    run = project.snakemake("--cores", "1", *targets, **options)
    assert run.code == 0, run.text[-5000:]
    return killed, Finished(project, run, project.digests())


def await_a_fit(project: Project, process: subprocess.Popen) -> None:
    """Wait until the first job of rule fit works."""
    logs = project.folder / "results" / "smoke" / "logs" / "fits" / PAPER
    settings = project.smoke.settings
    deadline = time.monotonic() + 900
    # The runner opens the log when all imports are done.
    while not any(path.parent.name in settings for path in logs.glob("*/*.log")):
        assert process.poll() is None, "ended without a fit"
        assert time.monotonic() < deadline, "no fit began"
        time.sleep(0.1)
    time.sleep(0.5)


def test_a_killed_run_goes_on_where_it_was(recovered, finished):
    killed, after = recovered
    begun = jobs(killed)
    steps = int(re.findall(r"^(\d+) of \d+ steps", killed, re.MULTILINE)[-1])
    assert sum(map(len, begun.values())) == steps + 1, "one job was running"
    both = {
        rule: begun.get(rule, set()) & after.run.jobs.get(rule, set()) for rule in finished.run.jobs
    }
    (rule,) = (rule for rule, outputs in both.items() if outputs)
    assert (rule, len(both[rule])) == ("fit", 1), "only the job that was killed runs again"


def test_cores_hashes_and_a_kill_change_no_byte(recovered, finished):
    _, after = recovered
    assert {f"smoke/{PAPER}/{item}.csv" for item in FITTED} <= after.digests.keys()
    assert after.digests.items() <= finished.digests.items()


# Runs that share, or stop


def test_papers_share_their_page_and_what_is_raw_but_nothing_else():
    """A paper can be added or left out without a change to the others."""
    config = read_yaml(ROOT / "config.yaml") | {"scale": "smoke"}

    def jobs_of(*papers: str) -> dict[str, dict[str, dict]]:
        return make_plan(config | {"papers": papers})["jobs"]

    two = (PAPER, "zhang2023")  # of one data set
    together, *alone = jobs_of(*two), *map(jobs_of, two)
    for rule, own in together.items():
        parts = [jobs[rule] for jobs in alone]
        assert own.keys() == set.union(*(set(part) for part in parts))
        if rule in ("generate_standin", "encode", "overview"):
            continue
        assert sum(map(len, parts)) == len(own), rule
        for part in parts:
            for key, job in part.items():
                assert own[key]["inputs"] == job["inputs"], (rule, key)
                if rule != "page":  # A page names the other papers.
                    assert own[key]["params"] == job["params"], (rule, key)


def test_a_wrong_setting_is_named_with_the_nearest_valid_one(unbuilt):
    run = unbuilt.snakemake("--dry-run", *SMOKE, "papers=[hagr2025]")
    assert run.code == 1
    found = "papers: 'hagr2025' is unknown"
    (line,) = (line for line in run.text.splitlines() if found in line)
    assert "did you mean 'hager2025'?" in line.split(found)[1]
    assert "Traceback" not in run.text
    assert len(run.text.splitlines()) < 10
