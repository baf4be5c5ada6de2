"""MonoBERT: a transformer that reads a query and a document together (Nogueira and Cho 2019).

It is BERT (Devlin et al. 2019) of any size, with learned positions and layer normalisation behind
each sum. Two heads read its output: a linear layer on the first token's vector gives a relevance
logit, and a decoder that shares the token table guesses masked tokens.
"""

import jax
import jax.numpy as jnp
from flax import nnx

from twotowers.towers.sequences import OFFSET, PAD

NORMAL = nnx.initializers.normal(0.02)
EPSILON = 1e-12
"""Of layer normalisation, as in BERT."""


class Layer(nnx.Module):
    """Self-attention and a network of two layers, each added to its input and normalised."""

    def __init__(self, width: int, heads: int, inner: int, dropout: float, rngs: nnx.Rngs):
        self.attention = nnx.MultiHeadAttention(
            heads, width, dropout_rate=dropout, kernel_init=NORMAL, decode=False, rngs=rngs
        )
        self.wide = nnx.Linear(width, inner, kernel_init=NORMAL, rngs=rngs)
        self.narrow = nnx.Linear(inner, width, kernel_init=NORMAL, rngs=rngs)
        self.first, self.second = (nnx.LayerNorm(width, epsilon=EPSILON, rngs=rngs) for _ in "12")
        self.dropout = nnx.Dropout(dropout)

    def __call__(
        self, hidden: jax.Array, where: jax.Array, rngs: nnx.Rngs | None, asked: int | None = None
    ) -> jax.Array:
        """The vectors of the first `asked` tokens; of all if None."""
        still, own = rngs is None, hidden[:, :asked]
        mixed = self.attention(own, hidden, mask=where, deterministic=still, rngs=rngs)
        hidden = self.first(own + self.dropout(mixed, deterministic=still, rngs=rngs))
        inner = self.narrow(jax.nn.gelu(self.wide(hidden), approximate=False))
        return self.second(hidden + self.dropout(inner, deterministic=still, rngs=rngs))


class MonoBert(nnx.Module):
    """The encoder and its two heads."""

    def __init__(
        self,
        *,
        vocabulary: int = 22_000,
        length: int = 128,
        layers: int = 12,
        heads: int = 12,
        width: int = 768,
        inner: int = 3072,
        dropout: float = 0.1,
        segments: int = 2,
        rngs: nnx.Rngs,
    ):
        """Initialise an encoder. The defaults are those of the thesis (Hager 2026, Section 3.4).

        Args:
            vocabulary: number of tokens of texts, without the special ones.
            length: the longest sequence.
            layers, heads: of the transformer.
            width: numbers per token, a multiple of `heads`.
            inner: width of each layer's network.
            dropout: rate of dropout, in [0, 0.99].
            segments: 2, or 3 if tokens are marked (`twotowers.towers.sequences.marked`).
            rngs: source of randomness.
        """
        self.token = nnx.Embed(vocabulary + OFFSET, width, embedding_init=NORMAL, rngs=rngs)
        self.position = nnx.Embed(length, width, embedding_init=NORMAL, rngs=rngs)
        self.segment = nnx.Embed(segments, width, embedding_init=NORMAL, rngs=rngs)
        self.norm = nnx.LayerNorm(width, epsilon=EPSILON, rngs=rngs)
        self.dropout = nnx.Dropout(dropout)
        self.layers = nnx.List(Layer(width, heads, inner, dropout, rngs) for _ in range(layers))
        self.click = nnx.Linear(width, 1, kernel_init=NORMAL, rngs=rngs)
        self.guess = nnx.Linear(width, width, kernel_init=NORMAL, rngs=rngs)
        self.guess_norm = nnx.LayerNorm(width, epsilon=EPSILON, rngs=rngs)
        self.guess_bias = nnx.Param(jnp.zeros(vocabulary + OFFSET))

    def __call__(
        self,
        tokens: jax.Array,
        segments: jax.Array,
        key: jax.Array | None = None,
        asked: int | None = None,
    ) -> jax.Array:
        """[documents, length] tokens, segments -> [documents, asked, width] of the first, or all.

        A key turns dropout on.
        """
        rngs = None if key is None else nnx.Rngs(dropout=key)
        place = jnp.arange(tokens.shape[1])
        hidden = self.token(tokens) + self.position(place) + self.segment(segments)
        hidden = self.dropout(self.norm(hidden), deterministic=rngs is None, rngs=rngs)
        where = (tokens != PAD)[:, None, None, :]
        for layer in self.layers[:-1]:
            hidden = layer(hidden, where, rngs)
        return self.layers[-1](hidden, where, rngs, asked)

    def relevance(self, hidden: jax.Array) -> jax.Array:
        """[documents] logits from the first token's vector."""
        return self.click(hidden[:, 0])[:, 0]

    def guesses(self, vectors: jax.Array) -> jax.Array:
        """[..., width] vectors of masked tokens -> [..., tokens] logits of what they were."""
        hidden = self.guess_norm(jax.nn.gelu(self.guess(vectors), approximate=False))
        return self.token.attend(hidden) + self.guess_bias[...]
