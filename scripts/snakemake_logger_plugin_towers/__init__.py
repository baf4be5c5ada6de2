"""`snakemake --logger towers`: one line per job, with an estimate of the time to go.

Snakemake's own messages are in .snakemake/log. A failed job says why it failed
(scripts/runner.py), and the run repeats it at the end (onerror in the Snakefile).
"""

from __future__ import annotations

import json
import logging
import sys

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from twotowers.files.artefacts import atomic
from twotowers.workflow.progress import SECONDS, Progress

# Messages that repeat what the job itself says; and one about the overview, which pages of papers
# write before the job whose output it is.
UNSAID = (
    "output files of rule overview were not present when the DAG was created",
    "CalledProcessError in file",
    "At least one job did not complete successfully",
    "Exiting because a job execution failed",
)


class LogHandler(LogHandlerBase):
    """Writes the progress of a run to stderr."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        self.progress: Progress | None = None

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = self.line(record)
            if line is not None:
                print(line, file=sys.stderr, flush=True)
        except Exception:
            # A handler must not stop a run.
            self.handleError(record)

    def line(self, record: logging.LogRecord) -> str | None:
        """The line to print for a record, or None."""
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:
                rules = {rule: n for rule, n in record.stats.items() if rule != "total"}
                earlier = json.loads(SECONDS.read_text()) if SECONDS.exists() else {}
                self.progress = Progress(rules, earlier)
            case LogEvent.JOB_INFO:
                self.progress.start(record.jobid, record.rule_name)
                return f"{self.progress}: {record.rule_msg or record.rule_name}"
            case LogEvent.JOB_FINISHED:
                self.progress.finish(record.job_id)
            case LogEvent.JOB_ERROR:
                self.progress.fail(record.jobid)
            case _ if record.levelno >= logging.WARNING:
                message = record.getMessage()
                return None if any(text in message for text in UNSAID) else message
            case None if record.getMessage() == NOTHING_TO_BE_DONE_MSG:
                return NOTHING_TO_BE_DONE_MSG
        return None

    def close(self) -> None:
        # Python calls this again at exit.
        progress, self.progress = self.progress, None
        if progress is not None and not self.common_settings.dryrun:
            print(progress.done, file=sys.stderr)
            with atomic(SECONDS) as path:
                path.write_text(json.dumps(progress.seconds, indent=1))
        super().close()
