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

The names of `__all__` are the library's face. Each is imported when it is first used, so this
package imports nothing heavy. The library does not know Snakemake or any paper.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twotowers.errors import InputError as InputError
    from twotowers.face.comparison import compare as compare
    from twotowers.face.diagnosis import Diagnosis as Diagnosis
    from twotowers.face.diagnosis import diagnose as diagnose
    from twotowers.face.fits import Fit as Fit
    from twotowers.face.fitting import fit as fit
    from twotowers.face.identification import Identification as Identification
    from twotowers.face.identification import identify as identify
    from twotowers.face.judgments import Judgments as Judgments
    from twotowers.face.logs import ClickLog as ClickLog
    from twotowers.face.logs import read_log as read_log
    from twotowers.face.propensities import Propensities as Propensities
    from twotowers.face.propensities import propensities as propensities
    from twotowers.face.rankings import RankingSet as RankingSet
    from twotowers.face.rankings import load_rankings as load_rankings
    from twotowers.face.rankings import stand_in as stand_in
    from twotowers.face.saved import load as load
    from twotowers.face.simulation import SimulatedClicks as SimulatedClicks
    from twotowers.face.simulation import policy as policy
    from twotowers.face.simulation import simulate as simulate
    from twotowers.face.towers import Dense as Dense
    from twotowers.face.towers import Method as Method
    from twotowers.face.towers import Tower as Tower
    from twotowers.face.towers import TwoTower as TwoTower
    from twotowers.face.weights import Weights as Weights
    from twotowers.face.weights import weights as weights
    from twotowers.models.additive import Additive as Additive
    from twotowers.models.position_based import PositionBased as PositionBased

__version__ = "0.1.0"

FACE = {
    "Additive": "models.additive",
    "ClickLog": "face.logs",
    "Dense": "face.towers",
    "Diagnosis": "face.diagnosis",
    "Fit": "face.fits",
    "Identification": "face.identification",
    "InputError": "errors",
    "Judgments": "face.judgments",
    "Method": "face.towers",
    "PositionBased": "models.position_based",
    "Propensities": "face.propensities",
    "RankingSet": "face.rankings",
    "SimulatedClicks": "face.simulation",
    "Tower": "face.towers",
    "TwoTower": "face.towers",
    "Weights": "face.weights",
    "compare": "face.comparison",
    "diagnose": "face.diagnosis",
    "fit": "face.fitting",
    "identify": "face.identification",
    "load": "face.saved",
    "load_rankings": "face.rankings",
    "policy": "face.simulation",
    "propensities": "face.propensities",
    "read_log": "face.logs",
    "simulate": "face.simulation",
    "stand_in": "face.rankings",
    "weights": "face.weights",
}
"""The module behind each name of the face."""

__all__ = [*FACE]


def __getattr__(name: str) -> Any:
    if name not in FACE:
        raise AttributeError(f"module 'twotowers' has no attribute {name!r}")
    try:
        found = getattr(import_module(f"twotowers.{FACE[name]}"), name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("twotowers"):
            raise
        raise ModuleNotFoundError(
            f"{name} needs {error.name}: pip install 'two-towers[jax]'", name=error.name
        ) from error
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *FACE})
