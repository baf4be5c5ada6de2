"""Two-tower models and unbiased learning to rank: simulation, click models, fitting, judging.

    import twotowers as tt

    log = tt.read_log("clicks.parquet", query="q", document="sku")
    tt.identify(log).identified
    tt.fit(log, "dbn", prior=(2, 0.2)).relevance()

The names of `__all__` are the library's face. Each is imported when it is first used, so this
package imports nothing heavy. The library does not know Snakemake or any paper.
"""

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from twotowers.errors import InputError as InputError
    from twotowers.face.comparison import compare as compare
    from twotowers.face.fits import Fit as Fit
    from twotowers.face.fits import fit as fit
    from twotowers.face.fits import load as load
    from twotowers.face.identification import Identification as Identification
    from twotowers.face.identification import identify as identify
    from twotowers.face.logs import ClickLog as ClickLog
    from twotowers.face.logs import read_log as read_log

__version__ = "0.1.0"

ROOT = Path(__file__).resolve().parents[1]
"""The project's folder."""

SPLITS = ("train", "validation", "test")
"""The parts of a ranking data set."""

LOG = "log"
"""The single part of a click log, with a row per query, document and bias factors."""

PAGES = "pages"
"""The same log page by page, for papers that ask for it."""

DOCUMENTS = "documents"
"""The features of the documents that such a log shows, where it knows documents by features."""

ANNOTATIONS = "annotations"
"""Labelled rankings that come with such a log. Their queries may be others than the log's."""

_FACE = {
    "ClickLog": "face.logs",
    "Fit": "face.fits",
    "Identification": "face.identification",
    "InputError": "errors",
    "compare": "face.comparison",
    "fit": "face.fits",
    "identify": "face.identification",
    "load": "face.fits",
    "read_log": "face.logs",
}
"""The module behind each name of the face."""

__all__ = [*_FACE]


def __getattr__(name: str) -> Any:
    if name not in _FACE:
        raise AttributeError(f"module 'twotowers' has no attribute {name!r}")
    found = getattr(import_module(f"twotowers.{_FACE[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_FACE})
