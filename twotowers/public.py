"""The names that the library offers, and its version. Provenance and the command line read them."""

VERSION = "0.1.0"

PUBLIC = {
    "Additive": "models.additive",
    "Counts": "logs.counted",
    "Dense": "simulations.towers",
    "Diagnosis": "diagnosis.diagnose",
    "Fit": "fits.fit",
    "Identification": "analysis.identification",
    "InputError": "errors",
    "Judgments": "fits.judgments",
    "Log": "logs.log",
    "LogTowers": "fits.towers",
    "Method": "simulations.towers",
    "PositionBased": "models.position_based",
    "Propensities": "analysis.propensities",
    "RankingSet": "simulations.rankings",
    "SimulatedClicks": "simulations.clicks",
    "Tower": "simulations.towers",
    "TwoTower": "simulations.towers",
    "Weights": "analysis.weights",
    "compare": "analysis.comparison",
    "diagnose": "diagnosis.diagnose",
    "fit": "fits.fitting",
    "identify": "analysis.identification",
    "load": "fits.saved",
    "load_rankings": "simulations.rankings",
    "policy": "simulations.clicks",
    "propensities": "analysis.propensities",
    "read_log": "logs.click_log",
    "simulate": "simulations.clicks",
    "stand_in": "simulations.rankings",
    "weights": "analysis.weights",
}
"""The module behind each name that `import twotowers` offers."""
