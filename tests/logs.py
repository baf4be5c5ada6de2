"""Click logs of rows, and their readers, as tests ask them."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from twotowers.errors import InputError
from twotowers.logs.opening import open_log
from twotowers.root import ROOT

YANDEX = ROOT.parent / "shared" / "data" / "yandex_20_queries" / "trainSample"
needs_yandex = pytest.mark.skipif(
    not YANDEX.is_file(), reason="real data: ../shared/data is not on this machine"
)


def taken(path, format, **settings):
    """All pages, and the other counts."""
    log = open_log(path, format, **settings)
    found = pa.Table.from_batches(log.batches)
    return found.to_pylist(), log.seen


def refused(path, format, **settings):
    with pytest.raises(InputError) as error:
        taken(path, format, **settings)
    if path.exists():
        assert str(path) in str(error.value)
    return error.value


def clicked_rows(pages: int, *queries: str) -> pd.DataFrame:
    """A row per shown document: b attracts, a does not; the second position is seen half."""
    rng, rows = np.random.default_rng(0), []
    for page in range(pages):
        for place, document in enumerate(rng.permutation(["a", "b", "c"]), start=1):
            chance = {"a": 0.1, "b": 0.8, "c": 0.4}[document] * {1: 1, 2: 0.5, 3: 0.4}[place]
            click = int(rng.random() < chance)
            rows.append((page, queries[page % len(queries)], document, place, click))
    names = ["session", "query", "document", "position", "clicks"]
    return pd.DataFrame(rows, columns=names)


def shop_rows(pages: int) -> pd.DataFrame:
    """The same of five queries, under a shop's names."""
    found = clicked_rows(pages, *(f"q{number}" for number in range(5)))
    return found.set_axis(["sid", "q", "sku", "rank", "click"], axis=1).assign(device="phone")
