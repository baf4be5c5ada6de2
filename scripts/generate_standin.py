"""Generate one part of a stand-in data set, as raw as the real files."""

from importlib import import_module

from scripts.runner import run


def main(inputs, outputs, *, standin: str, split: str, texts=(), **settings) -> None:
    """Write the split, or a part of the click log, to parquet.

    Args:
        inputs: none.
        outputs: one path.
        standin: the module of `twotowers.standins` that writes it.
        split: which part.
        texts: of a log with text, its law and its sessions.
        settings: see the module's `write`.
    """
    write = import_module(f"twotowers.standins.{standin}").write
    write(outputs[0], split, **settings, **dict(texts))


if "snakemake" in globals():
    run(main, snakemake)  # noqa: F821
