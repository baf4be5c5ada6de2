"""Rankings with labels, for simulations: a data set's files, or a stand-in."""

from dataclasses import dataclass
from pathlib import Path

from twotowers.datasets.letor import read_letor
from twotowers.datasets.preprocess import preprocess
from twotowers.datasets.sources import LETOR, source
from twotowers.errors import InputError, check_choice, check_range
from twotowers.files.rankings import Rankings
from twotowers.splits import SPLITS
from twotowers.standins.rankings import NAMES, generate


@dataclass(frozen=True, eq=False)
class RankingSet:
    """Documents of queries with graded relevance and features, in three splits.

    Attributes:
        name: of the data set.
        train, validation, test: the splits.
    """

    name: str
    train: Rankings
    validation: Rankings
    test: Rankings

    def __repr__(self) -> str:
        sizes = ", ".join(f"{len(getattr(self, split).queries):,} {split}" for split in SPLITS)
        return f"<{self.name}: {sizes} queries>"

    @property
    def splits(self) -> dict[str, Rankings]:
        """The splits by name."""
        return {split: getattr(self, split) for split in SPLITS}


def load_rankings(name: str, *, folder: str | Path, top: int = 25) -> RankingSet:
    """Read a data set in LETOR format that the table of sources knows.

    Each query keeps its documents of the highest labels. Labels become 0 to 4, and features signed
    log1p, as Hager et al. (2025) prepare them.

    Args:
        name: such as "mslr_web30k" or "mq2008" (twotowers/datasets/sources.yaml).
        folder: where its files are.
        top: documents per query at most, 1 or more.

    Raises:
        InputError: the name is unknown or is no data set of rankings, or a file is wrong.
    """
    about = source(name)
    if about.format != LETOR:
        raise InputError(f"{name!r} is a click log", field="name", expected="rankings with labels")
    splits = {}
    for split in SPLITS:
        # The table of sources has both for LETOR.
        assert about.width is not None
        assert about.label_max is not None
        path = Path(folder) / about.splits[split]
        raw = read_letor(path, width=about.width, label_max=about.label_max)
        splits[split] = preprocess(raw, top=top, label_max=about.label_max)
    return RankingSet(name, **splits)


def stand_in(name: str = "mslr30k", *, queries: int = 1000, top: int = 25) -> RankingSet:
    """Generated rankings with statistics close to those of a real data set.

    Args:
        name: "mslr30k", with the distributions of MSLR-WEB30K's features and labels; "yahoo",
            "istella_s", "yahoo_ltr" or "istella_s_ltr".
        queries: of the training split, 3 or more. Validation and test have a third each. Queries
            without a relevant document are left out.
        top: the documents of the highest labels that each query keeps.

    Raises:
        InputError: the name is unknown, or there are too few queries.

    Example:
        >>> stand_in(queries=30)
        <stand-in for mslr30k: 29 train, 10 validation, 10 test queries>
    """
    check_choice(name, NAMES, field="name")
    check_range(queries, field="queries", low=3, high=10**6, whole=True)
    sizes = {"train": queries, "validation": queries // 3, "test": queries // 3}
    splits = {
        split: preprocess(generate(name, split, queries=size, seed=0), top=top)
        for split, size in sizes.items()
    }
    return RankingSet(f"stand-in for {name}", **splits)
