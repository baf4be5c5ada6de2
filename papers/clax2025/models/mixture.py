"""The mixture of Figure 5.4: users of GCTR, of DCTR and of PBM, of one attraction."""

from dataclasses import dataclass
from typing import ClassVar

from twotowers.models.document_rate import DocumentRate
from twotowers.models.global_rate import GlobalRate
from twotowers.models.mixed import MixtureModel
from twotowers.models.position_based import PositionBased


@dataclass(frozen=True)
class Mixture(MixtureModel):
    """P(GCTR) sigmoid(rho) + P(DCTR) g + P(PBM) theta_k g, by session (thesis, Section 5.7.3)."""

    components: ClassVar[tuple] = (GlobalRate(), DocumentRate(), PositionBased())
