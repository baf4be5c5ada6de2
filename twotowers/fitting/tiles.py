"""Click rates, and how the device has them, laid out so that a step over all of them is fast.

Rows with the same feature vector and factor enter through their sums only, so each such pair is
one cell. Feature vectors that are seen with the same factors share a tile, up to `DEPTH` of them.
So a tile's examinations are looked up once, and its sums over a factor are dense. Only the sums
of the tiles need the slower indexed addition. A layer has one feature vector of each tile. Sums
over layers are written out, since XLA computes them several times as fast on a CPU as its own sums
over an axis.
"""

from dataclasses import dataclass
from functools import reduce
from operator import add

import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import register_dataclass

DEPTH = 8
"""Feature vectors of a tile. With 16 a step is as fast, and compiles for twice as long."""


@dataclass(frozen=True)
class ClickRates:
    """Click rates of the rows of some lanes.

    Attributes:
        feature: [rows] integers in [0, features), the feature vector of each row.
        factor: [lanes, rows] integers in [0, factors), the bias factor of each row.
        rate: [lanes, rows] clicks per impression, in [0, 1].
        weight: [lanes, rows] weight in the fit, >= 0; 0 where a lane lacks the row.
    """

    feature: np.ndarray
    factor: np.ndarray
    rate: np.ndarray
    weight: np.ndarray
    features: int
    factors: int


@register_dataclass
@dataclass(frozen=True)
class Layer:
    """One feature vector of each tile: [lanes, cells, tiles] sums of weight x rate, and of weight.

    Its cells are padded with weight 0.
    """

    clicks: jax.Array
    weight: jax.Array


@register_dataclass
@dataclass(frozen=True)
class Block:
    """Tiles of feature vectors that have about the same number of cells.

    Attributes:
        layers: the cells; see `Layer`.
        base: [cells, tiles] base factor of each cell; see `Layout`.
        feature: [layers, tiles] number of each feature vector; where a tile has fewer feature
            vectors, one more than the largest number.
    """

    layers: tuple[Layer, ...]
    base: jax.Array
    feature: jax.Array


@register_dataclass
@dataclass(frozen=True)
class Layout:
    """Click rates by cell; see the module's docstring.

    Lanes may merge bias factors differently. Base factors are the coarsest partition that refines
    the factors of every lane, so all lanes share the same cells.

    A value per feature vector is kept as a list per block, with one array [lanes, tiles] per layer.

    Attributes:
        blocks: the cells.
        merged: [lanes, base] the lane's factor that contains each base factor.
        shown: [lanes, factors] sum of weight.
    """

    blocks: tuple[Block, ...]
    merged: jax.Array
    shown: jax.Array

    def spread(self, values: jax.Array) -> list[jax.Array]:
        """Cells get their factor's value: [lanes, factors] to [lanes, cells, tiles], by block."""
        # Without the barriers XLA would repeat the lookups for every cell of every layer.
        base = jax.lax.optimization_barrier(jnp.take_along_axis(values, self.merged, axis=1))
        return [jax.lax.optimization_barrier(base[:, block.base]) for block in self.blocks]

    def collect(self, values: list[list[jax.Array]]) -> jax.Array:
        """Add up the cells of each factor: [lanes, cells, tiles] per block and layer -> [lanes,
        factors]."""
        lanes, bases = self.merged.shape
        index = jnp.concatenate([block.base.ravel() for block in self.blocks])
        summed = [jax.lax.optimization_barrier(reduce(add, layers)) for layers in values]
        cells = jnp.concatenate([part.reshape(lanes, -1) for part in summed], axis=1)
        base = jax.vmap(lambda row: jax.ops.segment_sum(row, index, bases))(cells)
        factors = self.shown.shape[1]
        return jax.vmap(lambda row, to: jax.ops.segment_sum(row, to, factors))(base, self.merged)

    def by_layer(self, values: np.ndarray, dtype) -> list[list[jax.Array]]:
        """[lanes, features] -> [lanes, tiles] per block and layer."""
        filled = np.pad(values, [(0, 0), (0, 1)])
        return [
            [jnp.asarray(filled[:, feature], dtype) for feature in np.asarray(block.feature)]
            for block in self.blocks
        ]

    def by_feature(self, values: list[list[jax.Array]], features: int) -> np.ndarray:
        """[lanes, tiles] per block and layer -> [lanes, features]; 0 for features not seen."""
        everyone = np.zeros((len(self.merged), features + 1), self.shown.dtype)
        for block, layers in zip(self.blocks, values, strict=True):
            for feature, part in zip(np.asarray(block.feature), layers, strict=True):
                everyone[:, feature] = part
        return everyone[:, :features]


def lay_out(rates: ClickRates, dtype=np.float32) -> Layout:
    """Put the rates on the device, by cell, in floats of the given type."""
    factor, weight = np.asarray(rates.factor), np.asarray(rates.weight, float)
    lanes = len(factor)
    _, base = np.unique(factor[0], return_inverse=True)
    for lane in factor[1:]:
        _, base = np.unique(base * np.int64(rates.factors) + lane, return_inverse=True)
    bases = int(base.max(initial=-1)) + 1
    merged = np.zeros((lanes, bases), np.int32)
    merged[:, base] = factor

    key, cell = np.unique(rates.feature * np.int64(bases) + base, return_inverse=True)
    feature, cell_base = np.divmod(key, max(bases, 1))
    clicks, shown = (
        # A cell more, which is empty, for padding.
        np.stack([np.bincount(cell, row, len(key) + 1) for row in rows]).astype(dtype)
        for rows in (weight * rates.rate, weight)
    )
    cell_base = np.append(cell_base, 0)
    seen, first, cells = np.unique(feature, return_index=True, return_counts=True)
    width = 2 ** np.ceil(np.log2(cells)).astype(int)
    blocks = []
    for size in np.unique(width):
        those = np.flatnonzero(width == size)
        number = np.arange(size)[:, None]
        # [size, vectors] cells of each feature vector, and one without any.
        index = np.where(number < cells[those], first[those] + number, len(key))
        index = np.pad(index, [(0, 0), (0, 1)], constant_values=len(key))
        vector = np.append(seen[those], rates.features)
        for tiles in _tiles(cell_base[index[:, :-1]]):
            blocks.append(
                Block(
                    layers=tuple(
                        Layer(
                            jnp.asarray(clicks[:, index[:, layer]]),
                            jnp.asarray(shown[:, index[:, layer]]),
                        )
                        for layer in tiles
                    ),
                    base=jnp.asarray(cell_base[index[:, tiles[0]]], jnp.int32),
                    feature=jnp.asarray(vector[tiles], jnp.int32),
                )
            )
    per_factor = np.stack(
        [np.bincount(*lane, rates.factors) for lane in zip(factor, weight, strict=True)]
    )
    return Layout(tuple(blocks), jnp.asarray(merged), jnp.asarray(per_factor, dtype))


def _tiles(base: np.ndarray) -> list[np.ndarray]:
    """[layers, tiles] numbers of columns, the number of columns where a tile has fewer.

    Tiles are of columns of `base` [cells, vectors] that are equal: of `DEPTH`, or of one where few
    are.
    """
    vectors = base.shape[1]
    _, group = np.unique(base, axis=1, return_inverse=True)
    order = np.argsort(group, kind="stable")
    group = group[order]
    start = np.searchsorted(group, group)
    size, rank = np.bincount(group)[group], np.arange(vectors) - start
    # The rest of a group fills a tile if it fills half of it.
    deep = (rank < size // DEPTH * DEPTH) | (size % DEPTH >= DEPTH / 2)
    stacks = [order[~deep][None]]
    if deep.any():
        tile = group[deep] * np.int64(vectors) + rank[deep] // DEPTH
        _, tile = np.unique(tile, return_inverse=True)
        tiles = np.full((DEPTH, tile.max() + 1), vectors)
        tiles[rank[deep] % DEPTH, tile] = order[deep]
        stacks.append(tiles)
    return [tiles for tiles in stacks if tiles.size]
