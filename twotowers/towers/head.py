"""The interface of auxiliary heads: modules whose losses are added to the loss of a model."""

from collections.abc import Mapping
from typing import ClassVar

import jax
from flax import nnx

LABELS = ("relevance", "prediction")
"""The labels that a head may read. `relevance` is the documents' relevance, scaled to [0, 1].
`prediction` comes from a relevance tower trained without heads (`twotowers.methods.likelihood`)."""


class Head(nnx.Module):
    """An auxiliary loss per cell, computed from the logits of a model's parts.

    Its gradient reaches the parts and the head's own parameters. It belongs to the objective while
    training only. Early stopping and tests use the model's loss without it.

    A head's file's name is its name in a configuration. `Head(units, *, <options>, rngs)` builds
    it, with `units` the width of the examination tower's last hidden layer (0: it has none).
    Its options are declared as those of a `Tower`.

    Attributes:
        needs: the parts that a model must have.
        labels: the names in `LABELS` that the head reads.
        reads_hidden: whether the head reads the examination tower's last hidden layer.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    labels: tuple[str, ...] = ()
    reads_hidden: bool = False

    def losses(
        self,
        parts: Mapping[str, jax.Array],
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
        labels: Mapping[str, jax.Array],
    ) -> jax.Array:
        """Losses of cells, each summed over the cell's impressions.

        Args:
            parts: attraction and examination logits, in shapes that broadcast to that of `shown`.
                If the head reads it, `hidden` has one more axis than examination, of units.
            shown: [...] impressions, weighted as in the objective.
            clicked: clicks, in the same shape.
            key: source of randomness.
            labels: name -> labels that the head reads, in [0, 1], in shapes that broadcast to that
                of `shown`.

        Returns:
            [...] losses, 0 where there are no impressions.
        """
        raise NotImplementedError
