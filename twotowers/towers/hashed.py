"""A table smaller than the number of query-document pairs: pairs share parameters by hashing."""

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.lane import Lanes
from twotowers.towers.parts import BASELINE, Ratio, SmallTable, Tower


class HashedTower(Tower):
    """logit = baseline + sign(pair) t[hash(pair)] (Weinberger et al. 2009; Hager 2026, 5.4.2).

    Two pairs that share a parameter have opposite signs half of the time, so collisions cancel on
    average.

    Args:
        pairs: number of query-document pairs.
        ratio: pairs per row of the table, as in `SmallTable`.
        rngs: source of randomness.
    """

    BY_PAIR = True

    def __init__(self, pairs: int, *, ratio: Lanes[Ratio] = 10.0, rngs: nnx.Rngs):
        self.differences = SmallTable(pairs, ratio, rngs)
        self.baseline = nnx.Param(jnp.float32(BASELINE))

    def __call__(self, pairs: jax.Array, key: jax.Array | None = None) -> jax.Array:
        """[...] pair numbers -> [...] logits. `key` is not used."""
        mixed = scrambled(pairs)
        sign = 1.0 - 2.0 * (scrambled(mixed) >> 31).astype(jnp.float32)
        row = mixed % jnp.uint32(self.differences.rows())
        return self.baseline[...] + sign * self.differences.values[...][row]


def scrambled(numbers: jax.Array) -> jax.Array:
    """Hash each number to uint32 by the finaliser of MurmurHash3, which is a bijection."""
    bits = numbers.astype(jnp.uint32) + jnp.uint32(0x9E3779B9)
    bits = (bits ^ (bits >> 16)) * jnp.uint32(0x85EBCA6B)
    bits = (bits ^ (bits >> 13)) * jnp.uint32(0xC2B2AE35)
    return bits ^ (bits >> 16)
