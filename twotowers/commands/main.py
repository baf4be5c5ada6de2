"""The command `twotowers`: what a click log can tell, and what to do with it."""

import argparse
import inspect
import os
import shlex
import signal
import sys
import traceback

from twotowers.public import VERSION

COMMANDS = {
    "diagnose": "is a log sound, can it give propensities, what to do? a page with three answers",
    "identify": "can position bias be learned from a log at all, and what would repair it?",
    "propensities": "how much less is a document examined at each position? with intervals",
    "fit": "fit a click model to a log, and save it with standard errors",
    "compare": "which click model predicts held-out pages best, and by how much?",
    "judgments": "grade documents by their clicks, for a search engine or an evaluation tool",
    "weights": "weigh clicks by inverse propensity, for a ranker that learns from them",
    "count": "count a log of any format and size into cells, or convert it",
}
"""Each command, and what it does, in a line."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: those of the shell if None.

    Returns:
        the exit status: 0; 1 from `identify`, `propensities` and `diagnose` for a log that cannot
            give propensities; 2 on bad input; 70 on a fault of the program itself; 130 if the user
            stops it, 143 if the system does.
    """
    if arguments is None:  # Blocks that end remove their temporary files.
        signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    given = sys.argv[1:] if arguments is None else arguments
    lines = "\n".join(f"  {name:<14}{line}" for name, line in COMMANDS.items())
    overview = argparse.ArgumentParser(
        prog="twotowers",
        usage="twotowers COMMAND LOG [options]",
        description="Click logs: test, fit, compare, use and count them.",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=f"commands:\n{lines}\n\n`twotowers COMMAND --help` lists its options.",
    )
    overview.add_argument("command", choices=[*COMMANDS], help=argparse.SUPPRESS)
    overview.add_argument("--version", action="version", version=f"twotowers {VERSION}")
    name = overview.parse_args(given[:1]).command
    # Sums in one order, on any number of cores; and small products are faster so.
    for library in ("OPENBLAS", "MKL"):
        os.environ.setdefault(f"{library}_NUM_THREADS", "1")
    # Here, for the overview needs no log.
    from twotowers.commands import fit, logs
    from twotowers.commands.options import FORMAT_HELP, add_reader_options, as_typed
    from twotowers.errors import InputError
    from twotowers.files import progress

    module = fit if name == "fit" else logs
    run = getattr(module, name)
    parser = argparse.ArgumentParser(
        prog=f"twotowers {name}",
        description=inspect.getdoc(run),
        formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog=FORMAT_HELP,
    )
    add_reader_options(parser)
    getattr(module, f"{name}_options")(parser)
    options = parser.parse_args(given[1:])
    try:
        with progress.shown():
            return run(options)
    except InputError as error:
        typed = shlex.join(["twotowers", *given])
        print(f"error: {as_typed(error, typed)}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("stopped: nothing was written", file=sys.stderr)
        return 130
    except Exception:
        traceback.print_exc()
        return 70  # Not 1, which is an answer.
