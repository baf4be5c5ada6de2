"""How well fits of a log predict held-out clicks."""

from __future__ import annotations

from scipy.special import xlogy

from twotowers.jobs.gates import totals
from twotowers.jobs.measures import perplexities
from twotowers.methods.task import Fitted, Split


def measures_of_cells(found: Fitted, split: Split) -> dict[str, float]:
    """What `Fit.evaluate` returns, from the losses of counts."""
    assert found.cell_losses is not None  # The likelihood of counts.
    losses = found.cell_losses(split)
    measured = {name: value for name, at, value in perplexities(losses, split.counts, 0) if not at}
    one = measured["mean_perplexity"]
    likelihood = -float(losses.sum() / split.counts.impressions.sum())
    return {"perplexity": one, "conditional": one, "log_likelihood": likelihood}


def likelihood_of_rates(train: Split, test: Split, name: str) -> float:
    """Log-likelihood of held-out clicks by click rates of training, a mean over documents shown.

    Args:
        train, test: the splits.
        name: "constant", one rate for all, or "ranks", one per position.
    """
    shown, clicked = totals(train, 0, name)
    rate = (clicked + clicked.sum() / shown.sum()) / (shown + 1)
    shown, clicked = totals(test, 0, name, size=len(rate))
    return float((xlogy(clicked, rate) + xlogy(shown - clicked, 1 - rate)).sum() / shown.sum())
