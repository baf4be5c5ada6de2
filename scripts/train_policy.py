"""Rankings of all splits -> relevance, and scores and ranks of the logging policy."""

from scripts.runner import job
from twotowers.files.rankings import read_rankings
from twotowers.jobs.policies import write_policy
from twotowers.splits import SPLITS


@job
def main(inputs, outputs, **settings):
    """Score and rank the documents; the settings are those of `write_policy`."""
    rankings = {split: read_rankings(getattr(inputs, split)) for split in SPLITS}
    write_policy(outputs[0], rankings, **settings)
