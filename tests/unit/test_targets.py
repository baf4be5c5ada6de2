"""What commands write to: nothing else is replaced, and nothing is left of what is stopped."""

import json
import os
import re
import shlex
import signal
import stat
import sys
import tempfile

import numpy as np
import pandas as pd
import pytest

import twotowers as tt
from tests.logs import clicked_rows
from tests.running import ran
from twotowers.analysis.weights import Weights
from twotowers.commands.main import main
from twotowers.diagnosis import page
from twotowers.errors import InputError
from twotowers.files.artefacts import atomic
from twotowers.fits.defaults import BIAS
from twotowers.logs.numbering import Spill
from twotowers.report import rendering
from twotowers.root import ROOT

ROWS = clicked_rows(400, *(f"q{number}" for number in range(20)))


@pytest.fixture
def log(tmp_path):
    path = tmp_path / "log.csv"
    ROWS.to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("command", "name"),
    [("weights", "w.csv"), ("count", "c.parquet"), ("judgments", "q.txt"), ("diagnose", "p.html")],
)
def test_a_pipe_is_no_file_to_replace(log, capsys, command, name):
    pipe = log.with_name(name)
    os.mkfifo(pipe)
    assert main([command, str(log), "--out", str(pipe)]) == 2
    assert "is a pipe or a device" in capsys.readouterr().err
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    with pytest.raises(InputError, match="is a pipe or a device"), atomic(pipe):
        pytest.fail("the block must not run")


def test_a_page_replaces_its_own_numbers_only(log, capsys):
    out, numbers = log.with_name("report.html"), log.with_name("report.json")
    for other in ('{"results": [1]}', "no json"):
        numbers.write_text(other)
        assert main(["diagnose", str(log), "--out", str(out)]) == 2
        assert "report.json: is another file" in capsys.readouterr().err
        with pytest.raises(InputError, match="is another file"):
            tt.diagnose(tt.read_log(log)).save(out)
        assert numbers.read_text() == other
        assert not out.exists()
    numbers.unlink()
    diagnosis = tt.diagnose(tt.read_log(log))
    diagnosis.save(out)
    diagnosis.save(out)
    assert json.loads(numbers.read_text())["title"] == str(log)


@pytest.mark.parametrize("mode", [0o600, 0o640, 0o444])
def test_permissions_are_kept(tmp_path, mode):
    path = tmp_path / "a.csv"
    path.touch()
    path.chmod(mode)
    with atomic(path) as temporary:
        assert not stat.S_IMODE(temporary.stat().st_mode) & ~(mode | stat.S_IWUSR)
        temporary.write_text("new")
    assert (path.read_text(), stat.S_IMODE(path.stat().st_mode)) == ("new", mode)


def test_either_the_page_and_its_numbers_are_written_or_none(log, monkeypatch):
    diagnosis, out = tt.diagnose(tt.read_log(log)), log.with_name("p.html")
    diagnosis.save(out)
    before = {each: each.read_bytes() for each in (out, page.numbers_of(out))}
    diagnosis.page["title"] = "new"

    def full(path):
        raise InputError("no space left on the disk; nothing was written", path=path)

    monkeypatch.setattr(rendering, "atomic", full)
    with pytest.raises(InputError, match="nothing was written"):
        diagnosis.save(out)
    assert {each: each.read_bytes() for each in before} == before
    assert sorted(log.parent.iterdir()) == sorted([log, *before])


def test_pages_beyond_memory_on_a_full_disk():
    code = (
        "import resource, numpy as np; from twotowers.logs.numbering import Spill\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (4096, resource.RLIM_INFINITY))\n"
        "Spill(0).keep(np.zeros(10_000))"
    )
    assert "InputError: " in (finished := ran([sys.executable, "-c", code], cwd=ROOT).stderr)
    assert "no space left on the disk" in finished


@pytest.mark.parametrize("folder", ["it's", 'a "b"', "ä;b"])
def test_temporary_files_in_a_folder_of_any_name(tmp_path, monkeypatch, folder):
    (tmp_path / folder).mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / folder))
    kept = Spill(0).keep(np.arange(5))
    assert isinstance(kept, np.memmap)
    assert kept.tolist() == [0, 1, 2, 3, 4]
    kept[:] += 1
    assert kept.tolist() == [1, 2, 3, 4, 5]
    # No file is left of it, whatever ends the process.
    assert [*(tmp_path / folder).iterdir()] == []
    found = tmp_path / "weights.csv"
    log = tt.read_log(ROWS, memory="1KB")
    tt.weights(log).write(found)
    assert len(pd.read_csv(found)) == len(ROWS)


STOPPED = """
import os, signal
from twotowers.analysis.weights import Weights
from twotowers.commands.main import main
rows = Weights._rows
def some(self):
    yield from rows(self)
    os.kill(os.getpid(), signal.SIGTERM)
Weights._rows = some
raise SystemExit(main())
"""


def test_nothing_is_left_of_a_command_that_is_stopped(log):
    assert callable(Weights._rows)
    command = [sys.executable, "-c", STOPPED, "weights", log, "--out", log.with_name("w.csv")]
    temporary = log.parent / "tmp"
    temporary.mkdir()
    finished = ran(command, cwd=ROOT, env={**os.environ, "TMPDIR": str(temporary)})
    assert finished.returncode == 128 + signal.SIGTERM
    assert sorted(log.parent.iterdir()) == [log, temporary]
    assert [*temporary.iterdir()] == []


def test_a_fault_of_the_program_is_no_answer(monkeypatch, capsys):
    monkeypatch.setattr("twotowers.commands.logs.count", lambda options: 1 / 0)
    assert main(["count", "log.csv", "--out", "c.parquet"]) == 70
    assert "ZeroDivisionError" in capsys.readouterr().err


@pytest.mark.parametrize("impressions", [[0, 0], []])
def test_a_log_without_impressions(tmp_path, capsys, impressions):
    log = tmp_path / "log.csv"
    rows = {"query": "q", "document": ["a", "b"], "position": [1, 2], "clicks": 0}
    table = pd.DataFrame(rows)[: len(impressions)].assign(impressions=impressions)
    table.to_csv(log, index=False)
    for command in ("diagnose", "propensities", "weights"):
        out = tmp_path / f"out.{'html' if command == 'diagnose' else 'csv'}"
        assert main([command, str(log), "--out", str(out)]) == 2
        assert "no document was clicked" in capsys.readouterr().err
        assert not out.exists()


CELLS = {
    "=HYPERLINK(1)": "'=HYPERLINK(1)", "=1+1": "'=1+1", "@SUM(1)": "'@SUM(1)", "-2(3)": "'-2(3)",
    "+1|' /C calc'!A0": "'+1|' /C calc'!A0", "\t=1": "'\t=1",
    **{text: text for text in ("-xYz_9", "@home", "a=1", "+49")},
}  # fmt: skip


def test_no_cell_of_a_csv_is_computed(tmp_path):
    log = tt.read_log(clicked_rows(400, *CELLS))
    out = tmp_path / "out.csv"
    tt.weights(log).write(out)
    assert {*CELLS.values()} <= set(pd.read_csv(out, dtype=str)["query"])
    tt.fit(log, "dctr").judgments(min_examinations=0).write(out, "csv")
    assert {*CELLS.values()} <= set(pd.read_csv(out, dtype=str)["query"])
    # Parquet computes nothing, so ids are as they were.
    tt.weights(log).write(tmp_path / "out.parquet")
    assert {*CELLS} <= set(pd.read_parquet(tmp_path / "out.parquet")["query"])


def test_a_suggested_command_is_one_for_a_shell(log):
    name = 'shown on; rm "x" $HOME'
    table = ROWS.assign(**{name: "web"})
    bias = [*BIAS, name]
    found = tt.diagnose(table, bias=bias)
    commands = re.findall(r"twotowers \w+ LOG .*?--out", json.dumps(str(found)))
    commands = [json.loads(f'"{each}"') for each in commands]
    assert commands
    for each in commands:
        words = shlex.split(each)
        start = words.index("--bias") + 1
        assert words[start : start + len(bias)] == bias


def test_results_do_not_depend_on_the_number_of_cores(log):
    code = (
        "import sys; from twotowers.commands.main import main; main(sys.argv[1:])\n"
        "from threadpoolctl import threadpool_info\n"
        "print({each['num_threads'] for each in threadpool_info() if each['user_api'] == 'blas'})"
    )
    known = {name: each for name, each in os.environ.items() if not name.endswith("_NUM_THREADS")}
    command = [sys.executable, "-c", code, "propensities", log]
    finished = ran(command, env=known, cwd=ROOT, check=True)
    assert finished.stdout.splitlines()[-1] == "{1}"
