"""The jobs that make a data set: a stand-in is generated, files are fetched and parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twotowers import ANNOTATIONS, DOCUMENTS, LOG, PAGES, ROOT, SPLITS
from twotowers.logs.opening import FOLDER, FORMATS
from twotowers.workflow.descriptions import STANDIN_SEED

if TYPE_CHECKING:
    from twotowers.workflow.planning import Planner


def dataset_jobs(plan: Planner, jobs: dict, name: str) -> None:
    """Add the jobs that make a data set: generated, or read from its files."""
    dataset = plan.dataset(name)
    if dataset.is_standin:
        sizes = dataset.standin.get(plan.config.scale)
        parts = sizes.parts if sizes else {}
        extra = (PAGES, DOCUMENTS) if LOG in parts else ()
        code = plan.code("scripts/generate_standin.py")
        # The annotated queries of a log with text are asked in it, too.
        texts = {"law": dataset.law, "sessions": parts[LOG]} if dataset.has_texts else None
        encoder = dataset.encoder.get(plan.config.scale)
        encoded = (DOCUMENTS, ANNOTATIONS) if encoder else ()
        if encoder:
            jobs["encode"][name] = {
                "inputs": {},
                "params": {
                    "code": plan.code("scripts/encode_standin.py"),
                    "encoder": encoder.plain(),
                    "queries": parts[ANNOTATIONS],
                    "seed": STANDIN_SEED,
                    **texts,
                },
            }
        for split in (*parts, *extra):
            if split in encoded:
                continue
            size = plan.standin_size(name, split)
            jobs["generate_standin"][f"{name}|{split}"] = {
                "inputs": {},
                "params": {"code": code, "name": name, "split": split, "size": size,
                           "seed": STANDIN_SEED, "texts": texts},
            }  # fmt: skip
        return
    source = dataset.of
    jobs["fetch"][name] = {
        "inputs": {},
        "params": {
            "code": plan.code("scripts/fetch_dataset.py"),
            "source": dataset.source,
            "folder": dataset.folder,
        },
    }
    parts = (*SPLITS, LOG, PAGES, DOCUMENTS, ANNOTATIONS)
    reader = FOLDER.relative_to(ROOT) / f"{source.format}.py"
    readers = [reader] if source.format in FORMATS else []
    for split in parts:
        jobs["parse"][f"{name}|{split}"] = {
            "inputs": [plan.file("manifest", dataset=name)],
            "params": {
                "code": plan.code("scripts/parse_dataset.py", *readers),
                "split": split,
                "format": source.format,
                "label_max": source.label_max,
                "width": source.width,
                "reading": dict(source.reading),
            },
        }
