"""`snakemake --logger towers`: a line per job instead of a dozen, and about how long to go.

Snakemake's own messages are in .snakemake/log as ever. Why a job failed is said by the job itself
(scripts/runner.py), and once more when all is over (onerror in the Snakefile).
"""

from __future__ import annotations

import json
import logging
import sys

from snakemake.common import NOTHING_TO_BE_DONE_MSG
from snakemake_interface_logger_plugins.base import LogHandlerBase
from snakemake_interface_logger_plugins.common import LogEvent

from twotowers.files.artefacts import atomic
from twotowers.running.progress import SECONDS, Progress, read_seconds

# Said better by the job's own message, or by what happens next.
UNSAID = (
    "CalledProcessError in file",
    "At least one job did not complete successfully",
    "Exiting because a job execution failed",
)


class LogHandler(LogHandlerBase):
    """Writes to stderr what a user wants to know of a run."""

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
            # A handler must never stop a run.
            self.handleError(record)

    def line(self, record: logging.LogRecord) -> str | None:
        """What to print of a record, if anything."""
        match getattr(record, "event", None):
            case LogEvent.RUN_INFO:
                rules = {rule: n for rule, n in record.stats.items() if rule != "total"}
                self.progress = Progress(rules, read_seconds(SECONDS)["rules"])
            case LogEvent.JOB_INFO:
                self.progress.start(record.jobid, record.rule_name, next(iter(record.output), None))
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
        # Called once more when Python exits.
        progress, self.progress = self.progress, None
        if progress is not None and not self.common_settings.dryrun:
            print(progress.done, file=sys.stderr)
            folders = read_seconds(SECONDS)["folders"] | progress.folders
            with atomic(SECONDS) as path:
                path.write_text(
                    json.dumps({"rules": progress.seconds, "folders": folders}, indent=1)
                )
        super().close()
