"""What the figures of this paper call their axes."""

POSITION = "Position (the first is 0, as printed)"
