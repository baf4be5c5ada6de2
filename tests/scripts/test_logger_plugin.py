"""What `snakemake --logger towers` makes of Snakemake's messages."""

from __future__ import annotations

import json
import logging
import re
from types import SimpleNamespace

import pytest
from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake_interface_logger_plugins.common import LogEvent

from scripts import snakemake_logger_plugin_towers as plugin


@pytest.fixture
def handler(tmp_path, monkeypatch):
    monkeypatch.setattr(plugin, "SECONDS", tmp_path / "seconds.json")
    return plugin.LogHandler(SimpleNamespace(dryrun=False), None)


def record(message="", level=logging.INFO, **extra) -> logging.LogRecord:
    made = logging.LogRecord("snakemake", level, __file__, 1, message, None, None)
    made.__dict__.update(extra)
    return made


def started(job: int, rule: str, message: str | None = None) -> logging.LogRecord:
    return record(event=LogEvent.JOB_INFO, jobid=job, rule_name=rule, rule_msg=message)


def test_a_run_is_a_line_per_job(handler, capsys):
    for event in (
        record("Job stats: ...", event=LogEvent.RUN_INFO, stats={"fit": 1, "page": 1, "total": 2}),
        record("Select jobs to execute..."),
        started(7, "fit", "Fit fig3 of hager2025, seed 2021"),
        record("Finished", event=LogEvent.JOB_FINISHED, job_id=7),
        started(8, "page"),
        record("Error in rule", logging.ERROR, event=LogEvent.JOB_ERROR, jobid=8),
        record(
            "Warning: the following output files of rule overview were not present when the DAG "
            "was created:\n{'figures/index.html'}",
            logging.WARNING,
        ),
        record("Exiting because a job execution failed. Look above", logging.ERROR),
    ):
        handler.emit(event)
    handler.close()
    handler.close()
    lines = [re.sub(r"\d+ s\b", "T", line) for line in capsys.readouterr().err.splitlines()]
    assert lines == [
        "0 of 2 jobs done, T so far: Fit fig3 of hager2025, seed 2021",
        "1 of 2 jobs done, T so far, less than a minute to go: page",
        "1 of 2 jobs done, 1 failed, T",
    ]


def test_the_next_run_knows_how_long_jobs_took(handler):
    plugin.SECONDS.write_text(json.dumps({"fit": 600, "study": 5}))
    handler.emit(record(event=LogEvent.RUN_INFO, stats={"fit": 2, "total": 2}))
    assert handler.line(started(1, "fit", None)).endswith("about 20 min to go: fit")
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=1))
    handler.close()
    seconds = json.loads(plugin.SECONDS.read_text())
    assert seconds["fit"] < 1
    assert seconds["study"] == 5


def test_what_no_job_says_gets_through(handler):
    text = "papers: 'hagr2025' is unknown"
    assert handler.line(record(text, logging.ERROR, event=LogEvent.ERROR)) == text
    assert handler.line(record(NOTHING_TO_BE_DONE_MSG)) == NOTHING_TO_BE_DONE_MSG
    child = "RuleException:\nCalledProcessError in file rules/fits.smk, line 1"
    assert handler.line(record(child, logging.ERROR, event=LogEvent.ERROR)) is None


def test_no_message_stops_a_run(handler, capsys):
    handler.emit(record(event=LogEvent.JOB_FINISHED, job_id=1))
    assert "Logging error" in capsys.readouterr().err
