"""Generate one part of a stand-in data set, as raw as the real files."""

from importlib import import_module

from scripts.runner import job


@job
def main(inputs, outputs, *, standin: str, split: str, texts=(), **settings) -> None:
    """Write the split, or a part of the click log, to parquet, by `write` of the stand-in's module.

    `texts` are the law and the sessions of a log with text.
    """
    write = import_module(f"twotowers.standins.{standin}").write
    write(outputs[0], split, **settings, **dict(texts))
