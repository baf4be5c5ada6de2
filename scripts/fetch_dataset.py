"""Find (or download) the files of a data set, verify them, and record them in a manifest."""

import json

from scripts.runner import job
from twotowers.datasets.download import manifest, obtain
from twotowers.experiment.objects import loaded
from twotowers.files.artefacts import atomic


@job
def main(inputs, outputs, *, source, folder: str) -> None:
    """Write {split: {path, sha256, bytes}} as JSON to outputs[0].

    The source is a `Source`, as `objects.dumped` has it. Its files, also downloads, are in
    `folder`.
    """
    listed = manifest(obtain(loaded(source), folder))
    with atomic(outputs[0]) as temporary:
        temporary.write_text(json.dumps(listed, indent=2) + "\n", encoding="utf-8")
