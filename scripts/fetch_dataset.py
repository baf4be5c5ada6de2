"""Find (or download) the files of a data set, verify them, and record them in a manifest."""

import json

from scripts.runner import job
from twotowers.datasets.download import manifest, obtain
from twotowers.datasets.sources import resolve
from twotowers.files.artefacts import atomic


@job
def main(inputs, outputs, *, source, folder: str) -> None:
    """Write {split: {path, sha256, bytes}} as JSON to outputs[0].

    The source is a name in the table of sources, or a mapping that declares a local data set. Its
    files, also downloads, are in `folder`.
    """
    listed = manifest(obtain(resolve(source), folder))
    with atomic(outputs[0]) as temporary:
        temporary.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
