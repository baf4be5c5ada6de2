"""A parameter per query-document pair."""

import jax
from flax import nnx

from twotowers.towers.parts import Tower, embedding


class EmbeddingTower(Tower):
    """One logit per query-document pair, looked up by the pair's number."""

    BY_PAIR = True

    def __init__(self, pairs: int, *, rngs: nnx.Rngs):
        self.pairs = pairs
        self.logits = embedding(pairs, rngs=rngs)

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits. `key` is not used."""
        return self.logits(pairs)[..., 0]
