"""The stand-in of WSCD-2012: what was calibrated holds, and would not at another level."""

import numpy as np
import pytest

from twotowers.randomness import stream
from twotowers.standins.wscd import LAW, draw

SESSIONS = 200_000


def found(law):
    """Perplexities that follow from click rates, those of GCTR and RCTR, and pairs per session."""
    drawn = zip(*draw(stream("wscd stand-in", 0), SESSIONS, law), strict=True)
    _, documents, clicks = (np.concatenate(column) for column in drawn)
    rates = clicks.mean(0)

    def perplexity(predicted):
        bits = -rates * np.log2(predicted) - (1 - rates) * np.log2(1 - predicted)
        return (2**bits).mean()

    return perplexity(rates.mean()), perplexity(rates), len(np.unique(documents)) / SESSIONS


def test_the_published_perplexities_and_pairs_per_session():
    global_rate, rank_rate, pairs = found(LAW)
    assert global_rate == pytest.approx(1.526, abs=0.01)
    assert rank_rate == pytest.approx(1.366, abs=0.01)
    assert pairs == pytest.approx(2.37, abs=0.1)
