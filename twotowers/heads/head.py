"""What an auxiliary head is: a module with a loss of its own, added to that of a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import jax
from flax import nnx

LABELS = ("relevance", "prediction")
"""The labels that a head may ask for. `relevance` is that of the documents, at most 1. `prediction`
comes from a relevance tower that was trained without heads (`twotowers.methods.likelihood`)."""


class Head(nnx.Module):
    """A loss per cell, of the logits that a model's parts give it.

    Its gradient reaches the parts and the head's own parameters. It is part of the objective
    only while training: early stopping and tests watch the model's own loss.

    A head lies in a file of its own, whose name is its name in a configuration. It is made by
    `Head(*, <options>, rngs)`; those options that the file names in `LANES` may differ between
    lanes.

    Attributes:
        needs: the parts that a model must have.
        labels: what it reads of documents besides clicks, some of `LABELS`.
    """

    needs: ClassVar[tuple[str, ...]] = ()
    labels: tuple[str, ...] = ()

    def losses(
        self,
        parts: Mapping[str, jax.Array],
        shown: jax.Array,
        clicked: jax.Array,
        key: jax.Array,
        labels: Mapping[str, jax.Array],
    ) -> jax.Array:
        """Losses of cells, each the sum over its impressions.

        Args:
            parts: attraction and examination logits, of shapes that broadcast to that of `shown`.
            shown: [...] impressions, weighted as in the objective.
            clicked: the same shape, clicks.
            key: draws what is random.
            labels: those that the head asked for, in [0, 1], of shapes that broadcast to that of
                `shown`.

        Returns:
            of the shape of `shown`; 0 where there are no impressions.
        """
        raise NotImplementedError
