"""The command `fit`, and the options of priors."""

import argparse
import ast
from typing import Any

from twotowers.commands.options import opened, pairs_of, refuse, show
from twotowers.errors import InputError
from twotowers.fits.defaults import MEAN, PRIOR
from twotowers.logs.strays import left_out
from twotowers.models.names import MODELS


def fit_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of `fit`."""
    parser.add_argument("--model", default="ubm", help=f"one of {', '.join(MODELS)} (ubm)")
    parser.add_argument("--out", help="parquet file to save the fit to")
    parser.add_argument("--positions", type=int, help="of the longest page (that of the log)")
    parser.add_argument("--test", type=float, help="share of pages held out to predict (none)")
    parser.add_argument("--seed", type=int, default=0, help="chooses these pages (0)")
    add_prior(parser)
    parser.add_argument(
        "--tower",
        help="fit towers by gradient descent: linear, deep, embedding, or widths such as 32,16",
    )
    parser.add_argument(
        "--features", metavar="FILE", help="table for the tower: document, and a column per feature"
    )
    parser.add_argument(
        "--part",
        action="append",
        metavar="PART=TOWER",
        help="a tower of a part of the model: a tower, table, or the part whose tower it shares; "
        "@documents, @positions or @both behind it say what it reads",
    )
    parser.add_argument(
        "--bias", nargs="+", metavar="COLUMN", help="numbers that towers of positions read"
    )
    parser.add_argument(
        "--training", nargs="+", metavar="KEY=VALUE", help="such as epochs=20 (docs/settings.md)"
    )
    parser.add_argument("--checkpoint", metavar="FILE", help="keeps the state, to go on from")
    parser.add_argument("--seeds", type=int, nargs="+", help="of towers; a fit for each (0)")


def add_prior(parser: argparse.ArgumentParser) -> None:
    """Add the options of the prior."""
    parser.add_argument(
        "--prior",
        help=f"imagined clicks, plus 1; 1 is no prior; or rate (the log's click rate), or chosen "
        f"on held-out pages ({PRIOR})",
    )
    parser.add_argument(
        "--prior-mean",
        type=float,
        help=f"with a number: share of clicks in what the prior imagines ({MEAN:g})",
    )


def prior_of(options: argparse.Namespace) -> tuple[float, float] | str:
    """The prior that the options name."""
    given = PRIOR if options.prior is None else options.prior
    try:
        number = float(given)
    except ValueError:
        if options.prior_mean is None:
            return given
        raise InputError(
            "the prior has a mean of its own", field="--prior-mean", expected="a number as prior"
        ) from None
    return number, MEAN if options.prior_mean is None else options.prior_mean


def fit(options: argparse.Namespace) -> int:
    """Fit a click model, or two towers, to a click log.

        twotowers fit LOG --model ubm --out ubm.parquet
        twotowers fit LOG --model pbm --tower 32,16 --features features.csv --out towers.parquet
        twotowers fit LOG --model dbn --tower deep --part continuation=linear@both --features f.csv

    Saves the fitted probabilities with their standard errors and intervals (docs/logs.md), and
    prints what to know of them; with --test, also how well they predict pages that are held out.
    The exit status is 0, or 2 on bad input; then nothing is written.
    """
    towers = options.tower or options.part
    fitted, head, scores = _towers(options) if towers else _click_model(options)
    table = [] if scores is None else [report(scores)]
    show(head, *left_out(fitted.log.seen), *table, *fitted.notes())
    if options.out:
        fitted.save(options.out)
        show(f"saved in {options.out}")
    return 0


def _click_model(options: argparse.Namespace) -> tuple[Any, str, Any]:
    """The fit, what it is, and how well it predicts pages that are held out; None if none is."""
    of_towers = ("features", "seeds", "bias", "training", "checkpoint")
    refuse(options, of_towers, "click models have none", "--tower, too")
    import pandas as pd  # here: options need no science

    from twotowers.fits.fitting import fit_click_model
    from twotowers.fits.models import fitted_model

    # Options are checked before the log is read, which may take minutes.
    fitted_model(options.model)
    how: dict[str, Any] = {"prior": prior_of(options), "positions": options.positions}
    log = opened(options, ".parquet")
    part, held_out = log, None
    if options.test:
        shares = {"train": 1 - options.test, "test": options.test}
        part, held_out = log.split(shares, seed=options.seed).values()
    fitted = fit_click_model(part, options.model, **how)
    size = "counted" if log.counted else f"{part.pages:,} pages"
    head = f"{fitted.name} fitted to {len(fitted.pairs):,} query-document pairs, {size}"
    if held_out is None:
        return fitted, head, None
    scores = pd.DataFrame([{"model": fitted.name, **fitted.evaluate(held_out)}])
    return fitted, f"{head}; {held_out.pages:,} others are predicted", scores


def _towers(options: argparse.Namespace) -> tuple[Any, str, Any]:
    """See `_click_model`."""
    from twotowers.fits import fitting  # here: options need no science
    from twotowers.simulations.towers import TwoTower

    why = "towers hold out a tenth of the log, and have no prior"
    refuse(options, ("test", "prior", "prior_mean"), why, "none")
    training = {name: _value(each) for name, each in pairs_of(options.training, "training")}
    parts = {name: _tower(each) for name, each in pairs_of(options.part, "part")}
    tower = _tower(options.tower or "deep")
    log = opened(options, ".parquet", bias=bool(options.bias))
    fitted = fitting.fit(
        log,
        TwoTower(tower, click_model=options.model, parts=parts),
        features=options.features,
        bias=options.bias or [],
        training=training,
        checkpoint=options.checkpoint,
        seeds=options.seeds or [0],
        positions=options.positions,
    )
    return fitted, repr(fitted), fitted.evaluate()


def _value(word: str) -> object:
    try:
        return ast.literal_eval(word)
    except (SyntaxError, ValueError):
        return word


def _tower(word: str) -> Any:
    """A tower as `TwoTower` takes it, from its name or its widths, and what it reads."""
    name, _, reads = word.partition("@")
    widths = name.split(",")
    numbers = all(each.strip().isdecimal() for each in widths)
    tower = {"kind": "dense", "layers": [*map(int, widths)]} if numbers else {"kind": name}
    if reads:
        return {**tower, "reads": reads}
    return tower if numbers else name


def report(scores: Any) -> str:
    """A frame of scores of models, as it is printed."""
    return scores.to_string(index=False, float_format="{:.4f}".format, na_rep="-")
