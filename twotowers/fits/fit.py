"""Click models fitted to one log: fit, look at, predict other pages, save, load.

A saved fit is a parquet file with a row per fitted probability. Columns: part (attraction,
examination, ...); query and document, position (from 1) and last_click (0 for none), as far as the
part has them; probability; error, its standard error, missing where there is none; low and high, an
interval of 95 %; trials, the expected number of times it was put to the test: what it rests on;
impressions, how often it was shown; and clicks of query and document. Documents that were never
tried are left out. The file's metadata has the name of the model, the number of positions, and the
prior.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from twotowers.claims.metrics import page_perplexities
from twotowers.errors import InputError, nearest
from twotowers.files.artefacts import atomic, check_target
from twotowers.fits.judgments import EXAMINATIONS, GRADES, Judgments, checked_grades, judgments_of
from twotowers.fits.prior_check import CONDITIONAL, PriorCheck, prior_check, warnings
from twotowers.fits.reduction import check_of_documents, pages_to_predict, predictions, shown_with
from twotowers.fits.tables import KNOWN, examinations_of, pair_numbers, places, product_of, table_of
from twotowers.fitting.curves import Curve
from twotowers.fitting.em import Estimate
from twotowers.logs.click_log import ClickLog, as_log
from twotowers.logs.frames import PANDAS, Native, native
from twotowers.logs.page_arrays import Pages
from twotowers.methods.page_fits import clicks_of_pages, losses_of_pages
from twotowers.models.position_based import PositionBased
from twotowers.models.protocol import PER_DOCUMENT, PER_POSITION, ClickModel
from twotowers.randomness import stream


@dataclass(frozen=True, eq=False)
class Fit:
    """A click model fitted to a log. `fit` and `load` make one.

    Attributes:
        name: of the model.
        model: the click model.
        positions: of the longest page that it can predict.
        estimate: its probabilities.
        pairs: columns query and document of its query-document pairs, by their number.
        kind: the library of the frames that answers come in.
        saved: the rows that it was loaded from; None for one that was fitted.
        log: to which it was fitted; None if that is not known, as of one that was loaded.
    """

    name: str
    model: ClickModel
    positions: int
    estimate: Estimate
    pairs: pa.Table
    kind: str = PANDAS
    saved: pa.Table | None = None
    log: ClickLog | None = None

    def __repr__(self) -> str:
        return f"<{self.name} fitted to {len(self.pairs):,} query-document pairs>"

    def __str__(self) -> str:
        return "\n".join([repr(self), *self.notes()])

    @cached_property
    def table(self) -> pa.Table:
        """Every fitted probability, as in a saved fit."""
        return table_of(self) if self.saved is None else self.saved

    @cached_property
    def conditional(self) -> Curve | None:
        """Examination conditional on each pair's clicks, relative to the first position.

        None if the model is not the position-based one, or the fit was loaded.
        """
        based = isinstance(self.model, PositionBased)
        return self.evidence.curve if based and self.evidence else None

    @cached_property
    def evidence(self) -> PriorCheck | None:
        """The evidence of the log on examination, whatever the model.

        None if the model has one probability for all documents, or the fit was loaded.
        """
        if self.log is None or "attraction" not in self.model.parts:
            return None
        return prior_check(self.log.count(), self.positions)

    def parameters(self, part: str) -> Native:
        """The fitted probabilities of one part of the model.

        Args:
            part: such as "attraction", "examination", "satisfaction" or "continuation".

        Returns:
            a frame: query and document, position and last_click, as far as the part has them;
            estimate, error (its standard error; missing where the clicks do not determine it), low
            and high (the ends of an interval of 95 %), trials, impressions.

        Raises:
            InputError: the model has no such part.
        """
        return native(self._of_part(part), self.kind)

    def _of_part(self, part: str, *further: str) -> pa.Table:
        parts = self.model.parts
        if part not in parts:
            raise InputError(f"{self.name} has no part {part!r}", expected=nearest(part, parts))
        table = self.table.filter(pc.equal(self.table["part"], part)).replace_schema_metadata()
        own = [*places(parts[part], 0, self.pairs)]
        known = (*KNOWN, *further)
        if part == "examination" and isinstance(self.model, PositionBased):
            known = (*KNOWN, *CONDITIONAL)
        table = table.select([*own, "probability", *known])
        return table.rename_columns([*own, "estimate", *known])

    def relevance(self) -> Native:
        """How relevant each document is to its query, the best of a query first.

        It is P(attractive), the chance of a click once the document is examined. In models with
        satisfaction it is attraction x satisfaction (Chapelle and Zhang 2009). Its standard error
        is then at most the one reported, and its interval has 95 % or more: they add up those of
        both factors' logarithms.

        Returns:
            a frame: query and document as in the log, estimate, error, low, high, trials and
            impressions, as `parameters` describes them; clicks; and examinations, how often users
            examined the document, in expectation.

        Raises:
            InputError: the model has one probability for all documents.

        Example:
            >>> import twotowers as tt
            >>> pages = {"documents": [["a", "b"], ["b", "a"]], "clicks": [[1, 0], [0, 1]]}
            >>> tt.fit(pa.table(pages), "dctr").relevance()["estimate"].to_pylist()
            [0.75, 0.25]
        """
        return native(self.relevances(), self.kind)

    def relevances(self) -> pa.Table:
        """What `relevance` returns, as an Arrow table."""
        check_of_documents(self.name, self.model)
        table = self._of_part("attraction", "clicks")
        imagined = self.estimate.prior.of("attraction")[1]
        independent = self.model.parts.get("examination") == PER_POSITION
        tried = examinations_of(table, imagined, independent=independent)
        table = table.append_column("examinations", pa.array(tried))
        if "satisfaction" in self.model.parts:
            table = product_of(
                table, self._of_part("satisfaction"), self.estimate.unknown()["satisfaction"]
            )
        order = [("query", "ascending"), ("estimate", "descending"), ("document", "ascending")]
        return table.sort_by(order)

    def judgments(
        self, grades: int | Sequence[float] = GRADES, min_examinations: float = EXAMINATIONS
    ) -> Judgments:
        """Graded relevance of documents, for search engines and evaluation tools.

        A document that users hardly examined has no judgment: not clicked is not irrelevant. One
        that they examined and never clicked has grade 0, in any query.

        Args:
            grades: a number of grades (4: 0 to 3, of which 1 to 3 have as many clicked pairs each,
                by the lower end of relevance; ties have the lower grade), or rising thresholds of
                relevance in [0, 1].
            min_examinations: those that a judgment needs (see `relevance`).

        Raises:
            InputError: an argument is out of range, or the model tells no document from another.

        Example:
            >>> import twotowers as tt
            >>> pages = {"documents": [["a", "b"], ["b", "a"]] * 9, "clicks": [[1, 0], [0, 1]] * 9}
            >>> fitted = tt.fit(pa.table(pages), "dctr")
            >>> fitted.judgments(grades=[0.3, 0.6]).frame()["grade"].to_pylist()
            [2, 0]
        """
        checked = checked_grades(grades, min_examinations)
        return judgments_of(self, checked, min_examinations)

    def examination(self) -> Native:
        """P(examined) at each position; in the user browsing model, also by the last click above.

        The clicks identify examination up to a scale, which attraction shares. Without a prior, the
        first position has 1.

        Returns:
            a frame: position (from 1), last_click (0 for none; in the user browsing model only),
            estimate, error, low, high, trials, impressions. In the position-based model also the
            estimate conditional on each pair's clicks (`propensities`), which has no prior and is
            relative to the first position: conditional, conditional_error (of its logarithm),
            conditional_low and conditional_high.

        Raises:
            InputError: the model has no examination of its own: it is certain, or follows from the
                clicks above. `parameters` has the parts behind it.
        """
        if "examination" not in self.model.parts:
            raise InputError(
                f"{self.name} has no examination that clicks do not decide",
                field="examination",
                expected=f"one of its parts, by `parameters`: {', '.join(self.model.parts)}",
            )
        return self.parameters("examination")

    def notes(self) -> Iterator[str]:
        """What to know before the fit is used, line by line. `print(fit)` shows it.

        The first lines have the priors of single parts. The next ones warn where the examination of
        a position-based fit differs from the conditional estimate by more than their errors, and
        where the log does not determine the examination of a model that has some. The first call of
        such a model reads the counts once more.

        Example:
            >>> import twotowers as tt
            >>> pages = {"documents": [["a", "b"], ["b", "a"]], "clicks": [[1, 0], [0, 1]]}
            >>> print(tt.fit(pa.table(pages), "ubm"))
            <ubm fitted to 2 query-document pairs>
            prior of attraction: mean 0.5, as much as 2 trials
            the log has little evidence at position 2: no interval there is to be trusted
            `twotowers propensities` says more
        """
        for part, (successes, trials) in self.estimate.prior.parts.items():
            yield f"prior of {part}: mean {successes / trials:.3g}, as much as {trials:g} trials"
        if "examination" in self.model.parts and self.evidence is not None:
            own = None if self.conditional is None else self._of_part("examination").to_pandas()
            yield from warnings(self.evidence.curve, own)

    def evaluate(self, log: object) -> dict[str, float]:
        """How well the fit predicts the clicks of a log.

        A document that it does not know has the prior's mean. Ids are compared as text if only one
        of the two logs has numbers.

        Args:
            log: see `read_log`, with pages.

        Returns:
            perplexity (of each click without the page's other clicks: 1 is perfect, 2 a coin; a
            mean over positions), conditional (the same, given the clicks above) and log_likelihood
            (of each click given those above, in nats, a mean over all documents shown).

        Raises:
            InputError: the log has no pages, a page is longer than the fit's, or a fit that was
                loaded knows none of the documents.
        """
        pages = self.arrays(as_log(log))
        return means_of(*self.losses(pages), pages.number)

    def predict(self, log: object) -> Native:
        """Click probabilities of each document of a log's pages.

        Args:
            log: see `read_log`, with pages.

        Returns:
            a frame: page (its number in the log, from 1), query, document, position, click (0 or
            1), probability of a click, and given_above, the same given the clicks above it. Where
            a row of the log is several pages, page is its number, and page_count says how many.

        Raises:
            InputError: see `evaluate`.

        Example:
            >>> import twotowers as tt
            >>> pages = pa.table({"documents": [["a", "b"], ["b", "a"]], "clicks": [[1, 0]] * 2})
            >>> tt.fit(pages, "rctr").predict(pages)["probability"].to_numpy().round(2).tolist()
            [0.75, 0.25, 0.75, 0.25]
        """
        pages = self.arrays(as_log(log))
        return native(predictions(pages, [self.losses(pages)[:2]]), self.kind)

    def sample(self, log: object, seed: int = 0) -> Native:
        """Clicks that users of the model could have made on a log's pages.

        Args:
            log: see `evaluate`; its own clicks play no part.
            seed: of the clicks.

        Returns:
            a frame that `read_log` reads: page, query, document, position and click, as of
            `predict`. A row that is several pages has each of them.

        Raises:
            InputError: see `evaluate`.

        Example:
            >>> import twotowers as tt
            >>> pages = pa.table({"documents": [["a", "b"]] * 2000, "clicks": [[1, 0]] * 2000})
            >>> drawn = tt.fit(pages, "rctr").sample(pages).to_pandas()
            >>> drawn.groupby("position")["click"].mean().round(1).tolist()
            [1.0, 0.0]
        """
        pages = pages_to_predict(as_log(log), self.model, self.positions)
        known, rng = self._probabilities(pages), stream("sample", seed)
        clicks = clicks_of_pages(self.model, *known, pages.where, rng)
        return native(pd.DataFrame(shown_with(pages, clicks)), self.kind)

    def arrays(self, log: ClickLog) -> Pages:
        """The pages of a log, as long as the fit's."""
        return pages_to_predict(log, self.model, self.positions, once=False)

    def losses(self, pages: Pages) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """[pages, K] losses of each click, alone and given those above it; and where it is."""
        known = self._probabilities(pages)
        return *losses_of_pages(self.model, *known, pages.clicks, pages.where), pages.where

    def _probabilities(self, pages: Pages) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The probabilities of each part, and the number of the pair at each place of the pages."""
        unknown = self.estimate.unknown()
        known = {
            # What is not in the log has the number behind the last.
            part: np.append(values, unknown[part])
            if self.model.parts[part] == PER_DOCUMENT
            else values
            for part, values in self.estimate.filled().items()
        }
        number = pair_numbers(self.pairs, pages.ids)
        of_documents = PER_DOCUMENT in self.model.parts.values()
        if self.saved is not None and of_documents and (number == len(self.pairs)).all():
            raise InputError(
                f"{self.name} was fitted to none of the log's query-document pairs",
                field="log",
                expected="a log with the ids of the fit",
            )
        return known, number[pages.pair]

    def save(self, path: str | Path) -> None:
        """Write the fit, all or nothing: the parquet file that the module describes.

        `load` reads it.

        Raises:
            InputError: another ending, there is no such folder, or the file is the log itself.
        """
        check_target(path, self.log, ".parquet")
        with atomic(path) as temporary:
            pq.write_table(self.table, temporary)


def means_of(
    alone: np.ndarray, given: np.ndarray, where: np.ndarray, number: np.ndarray | None = None
) -> dict[str, float]:
    """What `Fit.evaluate` returns, from `Fit.losses` and how often the log has each page."""
    means = {
        metric: float(value)
        for metric, position, value in page_perplexities(alone, given, where, number)
        if position is None
    }
    return {ours: means[theirs] for ours, theirs in METRICS.items()}


METRICS = {
    "perplexity": "mean_perplexity",
    "conditional": "mean_conditional_perplexity",
    "log_likelihood": "log_likelihood_clax",
}
"""Names of `Fit.evaluate` -> those of `twotowers.claims.metrics.page_perplexities`."""
