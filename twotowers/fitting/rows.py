"""A step of an optimiser on all parameters, or only on the rows of tables that a batch uses.

`AllRows` reads and writes every parameter in each step. `UsedRows` reads and writes a row of a
table only if the batch's gradient by this row is not 0. So the time of a step does not depend on
the size of the table. Between batches that use a row, its value and its state (such as the moments
of Adam) stay as they are. The optimiser counts all steps, and corrects moments by that count.
PyTorch's SparseAdam does the same.

The two differ in more than time. `AllRows` also moves rows without a gradient: their moments go on
moving them, the moments decay, and weight decay shrinks the rows. They are equal only if each batch
uses all rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import optax
from flax import nnx

from twotowers.errors import InputError
from twotowers.towers.parts import Table

Loss = Callable[[jax.Array, nnx.State], tuple[jax.Array, nnx.State]]
"""(parameters, rest of the model's state) -> a batch's loss, and the rest after it without tables.
"""


def split(model: nnx.Module, *, rows: bool) -> tuple[nnx.GraphDef, nnx.State, nnx.State]:
    """A model's graph, its parameters, and the rest of its state.

    Args:
        model: the model.
        rows: whether its tables are in the rest, for `UsedRows`.
    """
    if not rows:
        return nnx.split(model, nnx.Param, ...)
    graph, params, rest = nnx.split(model, nnx.All(nnx.Param, nnx.Not(Table)), ...)
    if not jax.tree.leaves(_tables(rest)):
        raise InputError(
            "the model has no table of pairs",
            field="rows",
            expected="false, or one of the towers baseline, hashed and quotient_remainder",
        )
    return graph, params, rest


@dataclass(frozen=True)
class AllRows:
    """Steps of an optimiser of Optax on one vector of parameters.

    Attributes:
        optimizer: the optimiser.
    """

    optimizer: optax.GradientTransformation

    def init(self, params: jax.Array, rest: nnx.State):
        """The optimiser's state before the first step."""
        return self.optimizer.init(params)

    def step(self, loss: Loss, params: jax.Array, rest: nnx.State, state) -> tuple:
        """The parameters, the rest and the optimiser's state after a batch."""
        gradient, rest = jax.grad(loss, has_aux=True)(params, rest)
        updates, state = self.optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), rest, state


@dataclass(frozen=True)
class UsedRows:
    """Steps on a vector of parameters, and on the used rows of the tables in the rest.

    Attributes:
        optimizer: one that treats each number alone, as all of `twotowers.fitting.optimizers` do.

    Example:
        A loss that uses row 2 twice, and row 1 not at all:

        >>> from jax.flatten_util import ravel_pytree
        >>> from twotowers.towers.baseline import BaselineTower
        >>> tower = BaselineTower(3, baseline=0.0, variance=0.0, rngs=nnx.Rngs(0))
        >>> graph, params, rest = split(tower, rows=True)
        >>> vector, restore = ravel_pytree(params)
        >>> def loss(vector, rest):
        ...     logits = nnx.merge(graph, restore(vector), rest)(jnp.array([2, 0, 2]))
        ...     return logits.sum(), nnx.State({})
        >>> steps = UsedRows(optax.sgd(0.5))
        >>> vector, rest, _ = steps.step(loss, vector, rest, steps.init(vector, rest))
        >>> vector.tolist(), rest["differences"][::2].tolist()
        ([-1.5], [-0.5, -1.0])
    """

    optimizer: optax.GradientTransformation

    def init(self, params: jax.Array, rest: nnx.State):
        """The states before the first step.

        Returns:
            the optimiser's state of the vector; for each table the optimiser's state of the table,
            and one integer per row, in which `_update` keeps what it works with.
        """
        tables = [
            (self.optimizer.init(table), jnp.zeros(table.shape, jnp.int32))
            for table in jax.tree.leaves(_tables(rest))
        ]
        return self.optimizer.init(params), tables

    def step(self, loss: Loss, params: jax.Array, rest: nnx.State, state) -> tuple:
        """The parameters, the rest and the state of `init` after a batch."""
        state, states = state
        gradient, uses, after = _gradients(loss, params, rest)
        updates, state = self.optimizer.update(gradient, state, params)
        tables, structure = jax.tree.flatten(_tables(rest))
        updated = map(self._update, tables, states, uses)
        tables, states = zip(*updated, strict=True)
        rest = nnx.merge_state(structure.unflatten(tables), after)
        return optax.apply_updates(params, updates), rest, (state, list(states))

    def _update(self, table: jax.Array, state, uses) -> tuple:
        """The table and its state after a step.

        Args:
            table: [rows].
            state: as from `init`.
            uses: the row [n] of each use, and the gradient [n] by it there.
        """
        (state, scratch), (rows, gradient) = state, uses
        # The uses of a row agree on one of them, which gets the sum of their gradients.
        number = jnp.arange(rows.size, dtype=jnp.int32)
        scratch = scratch.at[rows].set(number)
        chosen = scratch[rows]
        gradient = jnp.zeros_like(gradient).at[chosen].add(gradient)
        before, own = jax.tree.map(lambda leaf: leaf[rows] if leaf.ndim else leaf, (table, state))
        updates, own = self.optimizer.update(gradient, own, before)
        # Numbers for a row past the end are dropped.
        target = jnp.where((chosen == number) & (gradient != 0), rows, table.size)

        def written(leaf, new):
            return leaf.at[target].set(new, mode="drop") if leaf.ndim else new

        after = optax.apply_updates(before, updates)
        table, state = jax.tree.map(written, (table, state), (after, own))
        return table, (state, scratch)


def _gradients(loss: Loss, params: jax.Array, rest: nnx.State) -> tuple:
    """Gradients of a batch's loss, and the rest after it without tables.

    Returns:
        the gradient by `params`; for each table, the row [n] of each use and the gradient [n] by
        it there; the rest.
    """
    tables, others = nnx.split_state(rest, Table, ...)
    tables, structure = jax.tree.flatten(tables)

    def loss_with(params, stand_ins):
        return loss(params, nnx.merge_state(structure.unflatten(stand_ins), others))

    noted = [_Noting(table) for table in tables]
    # Nothing reads this loss, so the compiled program does not compute it.
    loss_with(params, noted)
    used = [[table[rows] for rows in each.rows] for table, each in zip(tables, noted, strict=True)]

    def loss_of_uses(params, used):
        return loss_with(params, [_Given(each) for each in used])

    gradients = jax.grad(loss_of_uses, argnums=(0, 1), has_aux=True)
    (gradient, by_use), after = gradients(params, used)
    uses = [(_flat(each.rows), _flat(by)) for each, by in zip(noted, by_use, strict=True)]
    return gradient, uses, after


class _Noting:
    """Stands in for a table, and notes the rows that are looked up."""

    def __init__(self, table: jax.Array):
        self.table, self.rows = table, []

    def __getitem__(self, rows):
        if rows is ...:
            return self
        self.rows.append(rows)
        return self.table[rows]


class _Given:
    """Stands in for a table whose rows have been looked up before, in the same order."""

    def __init__(self, used: list[jax.Array]):
        self.used = iter(used)

    def __getitem__(self, rows):
        return self if rows is ... else next(self.used)


def _tables(rest: nnx.State) -> nnx.State:
    return nnx.split_state(rest, Table, ...)[0]


def _flat(parts: list[jax.Array]) -> jax.Array:
    return jnp.concatenate([part.ravel() for part in parts])
