"""Results in long form."""

import numpy as np
import pandas as pd

from twotowers.claims.statistics import REQUIRED, read_results, write_results


def frame(**lanes) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "method": "two-tower",
            "metric": ["position_bias", "nll"],
            "position": [2, None],
            "value": [-np.log(2), 0.5],
            **lanes,
        }
    )


def test_round_trip(tmp_path):
    path = tmp_path / "sub" / "1.parquet"
    write_results(frame(strength=-0.333), path, paper="p", setting="s", seed=2021)
    back = read_results([path])
    assert list(back) == [*REQUIRED[:3], "method", "strength", *REQUIRED[3:]]
    assert back["position"].dtype == "Int64"
    assert back["position"].isna().tolist() == [False, True]
    assert back["value"].tolist() == [-np.log(2), 0.5]
    assert back[["paper", "setting", "seed"]].drop_duplicates().values.tolist() == [
        ["p", "s", 2021]
    ]
    assert (back["strength"] == -0.333).all()


def test_several_jobs_with_other_lanes_and_without_positions(tmp_path):
    paths = [tmp_path / f"{seed}.parquet" for seed in (1, 2)]
    nowhere = frame(strength=1.0, position=pd.array([pd.NA, pd.NA], "Int64"))
    write_results(nowhere, paths[0], paper="p", setting="s", seed=1)
    write_results(frame(budget=10), paths[1], paper="p", setting="s", seed=2)
    back = read_results(paths)
    assert back["seed"].tolist() == [1, 1, 2, 2]
    assert back["strength"].isna().tolist() == [False, False, True, True]
    assert back["budget"].isna().tolist() == [True, True, False, False]
    assert back["position"].isna().tolist() == [True, True, False, True]
