"""How the figures of this paper tell repairs apart."""

from twotowers.report.figures import GREY, Look

UNREPAIRED = Look(GREY, "v", "DLA, no repair")
INTERVENTION = Look("#0072B2", "o", "node intervention")
MERGING = Look("#D55E00", "s", "node merging")
POSITION = "Position (the first is 0, as printed)"
