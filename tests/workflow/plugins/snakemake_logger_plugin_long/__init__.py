"""`snakemake --logger long`: rule, files and resources of each job, instead of its message."""

import logging
import sys

from snakemake.logging import ColorizingTextHandler, DefaultFilter, DefaultFormatter
from snakemake_interface_logger_plugins.base import LogHandlerBase


class LogHandler(LogHandlerBase):
    """Snakemake's own text for rules without a message."""

    writes_to_stream = True
    writes_to_file = False
    has_filter = True
    has_formatter = True
    needs_rulegraph = False

    def __post_init__(self) -> None:
        said = self.common_settings
        self.plain = ColorizingTextHandler(
            nocolor=True,
            stream=sys.stderr,
            formatter=DefaultFormatter(said.quiet, said.show_failed_logs),
            filter=DefaultFilter(
                said.quiet, said.debug_dag, said.verbose, said.dryrun, said.printshellcmds
            ),
        )

    def emit(self, record: logging.LogRecord) -> None:
        record.rule_msg = None
        self.plain.handle(record)
