"""Weights of clicks, for rankers that learn from a log: one over the propensity, clipped."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from twotowers.analysis.propensities import AUTOMATIC, ENDINGS, propensities
from twotowers.errors import InputError, check_choice, check_names, check_range
from twotowers.files.artefacts import atomic, check_target
from twotowers.files.tables import write_batches, write_csv
from twotowers.fits.defaults import BIAS, WEIGHED_BY
from twotowers.fits.fitting import fit_click_model
from twotowers.logs.click_log import ClickLog, as_log
from twotowers.logs.counted import key_of
from twotowers.logs.frames import Native, native
from twotowers.logs.sessions import EQUAL, OWN
from twotowers.report.shown import Shown
from twotowers.report.words import numbered

PBM = "pbm"
CLIP = 10.0
"""The largest weight, by default."""


@dataclass(frozen=True, eq=False, repr=False)
class Weights(Shown):
    """A weight for each bias factor of a log. `weights` makes one.

    Attributes:
        table: a row per bias factor, as `frame` describes.
        bias: the columns that name a bias factor.
        clip: the largest weight.
        log: the log whose rows they weigh.
        warnings: what speaks against all of them, as far as it is known.
    """

    table: pd.DataFrame
    bias: tuple[str, ...]
    clip: float
    log: ClickLog
    warnings: tuple[str, ...] = ()

    def frame(self) -> Native:
        """A row per bias factor.

        Returns:
            a frame: the bias columns; propensity (examination relative to the first position),
            low and high (95 %), weight (1 / propensity, at most `clip`; missing where the log has
            no evidence), impressions and clicks of the log, clipped, and reason (why there is no
            propensity, or why to doubt it).
        """
        return native(pa.Table.from_pandas(self.table, preserve_index=False), self.log.kind)

    @property
    def clicks(self) -> float:
        """Number of clicks that have a weight."""
        return float(self.table["clicks"][self.table["weight"].notna()].sum())

    @property
    def effective(self) -> float:
        """Effective number of clicks: how many of one weight would be as precise.

        It is (sum w)^2 / sum w^2 over clicks of weights w (Kish 1965), at most `clicks`.
        """
        clicks, weight = (self.table[name].to_numpy(float) for name in ("clicks", "weight"))
        known = np.isfinite(weight)
        return _ratio((clicks * weight)[known].sum() ** 2, (clicks * weight**2)[known].sum())

    @property
    def lost(self) -> float:
        """Share of the unclipped weight that clipping removes: how much bias it brings back."""
        known = self.table[self.table["weight"].notna()]
        full = known["clicks"] / known["propensity"]
        return 1 - _ratio((known["clicks"] * known["weight"]).sum(), full.sum())

    def write(self, path: str | Path, *, per: str = "row") -> None:
        """Write weights as csv or parquet, by the ending, all or nothing.

        Args:
            path: the file.
            per: "row": a row per shown document, with page (from 1, in the log's order), the
                columns of the log that tell its pages apart, query, document, position (as the log
                counts it), further bias columns, click, propensity, weight, and doubtful (1 where
                `frame` has a reason, else 0), and page_count if a row of the log is several pages;
                of a counted log a row per cell, with impressions and clicks. "position": what
                `frame` returns.

        Raises:
            InputError: another ending or another word for `per`, there is no such folder, or the
                file is the log itself.
        """
        check_target(path, self.log, *ENDINGS)
        if per not in ("row", "position"):
            raise InputError(f"{per!r}", field="per", expected="'row' or 'position'")
        whole = pa.RecordBatch.from_pandas(self.table, preserve_index=False)
        batches = self._rows() if per == "row" else [whole]
        if Path(path).suffix == ".parquet":
            write_batches(path, batches)
            return
        with atomic(path) as temporary:
            for number, batch in enumerate(batches):
                write_csv(batch.to_pandas(), temporary, mode="a", header=not number)

    def _rows(self) -> Iterator[pa.RecordBatch]:
        """The rows of the log with their weights, some at a time."""
        bias, further = list(self.bias), [name for name in self.bias if name != "position"]
        counts = self.log.count(bias)
        keys = key_of(counts.columns, counts.ids)
        doubtful = self.table["reason"].ne("").astype(np.int8)
        known = self.table[[*bias, "propensity", "weight"]].assign(doubtful=doubtful)
        known = counts.table().select(bias).to_pandas().merge(known, how="left", on=bias)

        def weighed(own: Mapping[str, np.ndarray]) -> dict[str, pa.Array]:
            row = np.searchsorted(keys, key_of({name: own[name] for name in bias}, counts.ids))
            return {
                name: pa.array(known[name].to_numpy()[row], from_pandas=True)
                for name in ("propensity", "weight", "doubtful")
            }

        if self.log.counted:
            order = dict.fromkeys(["query", "document", *bias, "position"])
            cells = self.log.count([*order])
            names = ["query", "document", "position", *further]
            table = cells.table().select([*names, "impressions", "clicks"])
            for name, values in weighed(cells.columns).items():
                table = table.append_column(name, values)
            yield from table.to_batches()
            return
        pages, first = own_pages(self.log), self.log.settings.get("first", 1)
        log = self.log.holding([*further, *pages])
        for block in log.blocks:
            names = (*pages, "query", "document", "position", *further)
            own = {name: block.column(name) for name in names}
            columns = {"page": pa.array(block.before + block.page + 1)}
            taken = {name: log.ids[name].take(each) for name, each in own.items()}
            columns |= {name.removeprefix(OWN): taken[name] for name in pages} | taken
            columns = {name: each for name, each in columns.items() if name not in pages}
            columns["position"] = pc.add(taken["position"], pa.scalar(first - 1, pa.int32()))
            columns["click"] = pa.array(block.click.astype(np.int8))
            if block.times is not None:
                columns[EQUAL] = pa.array(np.repeat(block.times, block.lengths))
            yield pa.RecordBatch.from_pydict(columns | weighed(own))

    def lines(self) -> Iterator[str]:
        """What is printed: how much the weights cost, and what they are valid for."""
        table = self.table
        known = table["weight"].notna()
        yield (
            f"{numbered(self.clicks, 'click')} as effective as {self.effective:,.0f} of one "
            f"weight; weights are {table['weight'].min():.3g} to {table['weight'].max():.3g}"
        )
        if table["clipped"].any():
            yield (
                f"clipped at {self.clip:g}: {table['clipped'].sum()} of "
                f"{numbered(len(table), 'weight')}, which leaves out {self.lost:.1%} of the whole "
                "weight: so much bias remains"
            )
        if not known.all():
            yield (
                f"without a weight: {(~known).sum()} of {len(table)}, because the log has no "
                f"evidence; {numbered(table['clicks'][~known].sum(), 'click')}. Leave out their "
                "rows, clicked or not"
            )
        doubtful = known & table["reason"].ne("")
        if doubtful.any():
            yield (
                f"doubtful: {numbered(doubtful.sum(), 'weight')} of "
                f"{numbered(table['clicks'][doubtful].sum(), 'click')}; the column doubtful marks "
                "their rows, the column reason of --per position says why"
            )
        yield (
            "they are for clicked documents in a listwise or pairwise loss, if a click's chance is "
            "examination x relevance. They are no weights of documents that were not clicked"
        )
        if not self.log.counted:
            yield "twotowers diagnose tests whether clicks depend on the clicks above"
        yield from self.warnings


def weights(
    log: object, *, by: str = AUTOMATIC, bias: Sequence[str] = BIAS, clip: float = CLIP
) -> Weights:
    """Weights of clicks: min(1 / propensity, clip), for inverse propensity scoring.

    If a click's chance is examination x relevance, a loss that sums weight x loss over clicked
    documents has, without clipping, the expectation of the loss over relevant documents
    (Joachims et al. 2017, Eq. 4).

    Args:
        log: a log of `read_log`, or what `read_log` takes.
        by: an estimator of `propensities`, or "pbm" to fit a position-based model.
        bias: columns that together name the bias factor, such as ["position", "device"].
        clip: the largest weight, from 1 on.

    Returns:
        a weight for each bias factor. One without evidence in the log has none, and a reason.

    Raises:
        InputError: an argument is unknown or out of range, or see `propensities`.

    Example:
        >>> rows = {"query": ["q"] * 4, "document": ["a", "a", "b", "b"],
        ...         "position": [1, 2, 1, 2], "impressions": [100] * 4, "clicks": [40, 20, 20, 10]}
        >>> weights(pa.table(rows)).frame()["weight"].to_numpy().round(6).tolist()
        [1.0, 2.0]
    """
    check_range(clip, field="clip", low=1, high=1e9)
    bias = check_names(bias, field="bias")
    check_choice(by, WEIGHED_BY, field="by")
    if by == PBM and bias != list(BIAS):
        raise InputError(f"{bias}", field="bias", expected="['position'], as the fit has it")
    log = as_log(log)
    if not log.counted:
        log.holding(own_pages(log))  # `Weights.write` needs them.
    estimated = propensities(log, bias=bias, estimator=AUTOMATIC if by == PBM else by)
    shown = {"impressions": estimated.counts.shown, "clicks": estimated.counts.clicked}
    curve, warnings = estimated.curve.frame().assign(**shown), tuple(estimated.warnings())
    if by == PBM:
        curve, warnings = _of_fit(log, curve), ()
    table = curve[list(bias)].reset_index(drop=True)
    propensity = curve["estimate"].to_numpy(float)
    with np.errstate(divide="ignore"):
        full = 1 / propensity
    known = np.isfinite(propensity)
    table = table.assign(
        propensity=propensity,
        low=curve["low"].to_numpy(),
        high=curve["high"].to_numpy(),
        weight=np.where(known, np.minimum(full, clip), np.nan),
        impressions=curve["impressions"].to_numpy(),
        clicks=curve["clicks"].to_numpy(),
        clipped=known & (full > clip),
        reason=curve["reason"].to_numpy(),
    )
    return Weights(table, tuple(bias), clip, log, warnings)


def own_pages(log: ClickLog) -> list[str]:
    """The columns of a log that hold what its source calls a page, where it says that."""
    session = log.layout.columns.get("session", "session")
    names = {"rows": log.settings.get("page") or [session], "ubi": ["query_id"]}
    return [OWN + name for name in names.get(log.layout.format, ())]


def _of_fit(log: ClickLog, curve: pd.DataFrame) -> pd.DataFrame:
    """Examination of a position-based fit, relative to the first position, and what to doubt."""
    fit: Any = fit_click_model(log, PBM)
    examination = fit._of_part("examination").to_pandas().set_index("position")
    first = examination.index.min()
    ratios = examination[["estimate", "low", "high"]] / examination.loc[first, "estimate"]
    ratios.loc[first] = ratios.loc[first, "estimate"]  # The reference is certain, as in a curve.
    curve = curve.set_index("position").reindex(examination.index)
    no_evidence = "the log has no evidence; this is the fit's prior"
    reason = np.where(curve["estimate"].notna(), curve["reason"], no_evidence)
    columns = {name: curve[name].fillna(0) for name in ("impressions", "clicks")}
    return ratios.assign(**columns, reason=reason).reset_index()


def _ratio(one: float, other: float) -> float:
    return float(one / other) if other else 0.0
