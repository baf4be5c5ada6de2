"""Two-tower models and unbiased learning to rank: simulation, click models, fitting, judging.

    import twotowers as tt

    log = tt.read_log("clicks.parquet", query="q", document="sku")
    tt.identify(log).identified
    tt.fit(log, "dbn", prior=(2, 0.2)).judgments(grades=4).write("qrels.txt")
    tt.weights(log, clip=10).write("weights.csv")

    rankings = tt.stand_in("mslr30k", queries=300)
    log = tt.simulate(rankings, policy=tt.policy(strength=1), user=tt.PositionBased(eta=1))
    fitted = tt.fit(log, tt.TwoTower(tt.Dense([32, 16])), method=tt.Method("likelihood"))
    fitted.examination(), fitted.evaluate(rankings.test)

The names of `__all__` are the public API. Each is imported when it is first used, so this package
imports nothing heavy. The library does not know Snakemake or any paper.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from twotowers.public import PUBLIC, VERSION

if TYPE_CHECKING:
    from twotowers.analysis.comparison import compare as compare
    from twotowers.analysis.identification import Identification as Identification
    from twotowers.analysis.identification import identify as identify
    from twotowers.analysis.propensities import Propensities as Propensities
    from twotowers.analysis.propensities import propensities as propensities
    from twotowers.analysis.weights import Weights as Weights
    from twotowers.analysis.weights import weights as weights
    from twotowers.diagnosis.diagnose import Diagnosis as Diagnosis
    from twotowers.diagnosis.diagnose import diagnose as diagnose
    from twotowers.errors import InputError as InputError
    from twotowers.fits.fit import Fit as Fit
    from twotowers.fits.fitting import fit as fit
    from twotowers.fits.judgments import Judgments as Judgments
    from twotowers.fits.saved import load as load
    from twotowers.fits.towers import LogTowers as LogTowers
    from twotowers.logs.click_log import read_log as read_log
    from twotowers.logs.counted import Counts as Counts
    from twotowers.logs.log import Log as Log
    from twotowers.models.additive import Additive as Additive
    from twotowers.models.position_based import PositionBased as PositionBased
    from twotowers.simulations.clicks import SimulatedClicks as SimulatedClicks
    from twotowers.simulations.clicks import policy as policy
    from twotowers.simulations.clicks import simulate as simulate
    from twotowers.simulations.rankings import RankingSet as RankingSet
    from twotowers.simulations.rankings import load_rankings as load_rankings
    from twotowers.simulations.rankings import stand_in as stand_in
    from twotowers.simulations.towers import Dense as Dense
    from twotowers.simulations.towers import Method as Method
    from twotowers.simulations.towers import Tower as Tower
    from twotowers.simulations.towers import TwoTower as TwoTower

__version__ = VERSION
__all__ = [*PUBLIC]


def __getattr__(name: str) -> Any:
    if name not in PUBLIC:
        raise AttributeError(f"module 'twotowers' has no attribute {name!r}")
    try:
        value = getattr(import_module(f"twotowers.{PUBLIC[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("twotowers"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}: pip install '.[jax]', in a clone of the project",
            name=error.name,
        ) from error
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})
