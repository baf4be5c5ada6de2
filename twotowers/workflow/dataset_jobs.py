"""The jobs that make a data set: a stand-in is generated, files are fetched and parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from twotowers.errors import check_choice
from twotowers.experiment.objects import dumped
from twotowers.logs.opening import FOLDER, FORMATS
from twotowers.root import ROOT
from twotowers.splits import ANNOTATIONS, DOCUMENTS, IDS, LOG, PAGES, SPLITS
from twotowers.standins import logs, rankings, uva, wscd

if TYPE_CHECKING:
    from twotowers.experiment.config import DataSet
    from twotowers.workflow.planning import Planner


STANDIN_SEED = 0
"""The seed of all stand-ins."""
STANDINS = {
    name: module.__name__.rpartition(".")[2]
    for module in (rankings, logs, wscd, uva)
    for name in module.NAMES
}
"""The modules that generate data sets without text, by the names of these."""


def standin_of(name: str, dataset: DataSet) -> str | None:
    """The module that would generate a data set, if there is one."""
    return "baidu_files" if dataset.has_texts else STANDINS.get(name)


def standin_file(standin: str) -> str:
    """The module's file, relative to the project."""
    return f"twotowers/standins/{standin}.py"


def dataset_jobs(plan: Planner, jobs: dict, name: str) -> None:
    """Add the jobs that make a data set: generated, or read from its files."""
    dataset = plan.dataset(name)
    encoder = dataset.encoder_at(plan.config.scale)
    encoded = (DOCUMENTS, ANNOTATIONS) if encoder else ()
    if encoder:
        encoding = {"code": plan.code("scripts/encode.py"), "encoder": encoder.plain()}
    if dataset.is_standin:
        parts = dataset.standin.get(plan.config.scale, {})
        extra = (PAGES, DOCUMENTS) if LOG in parts else ()
        standin = standin_of(name, dataset)
        if standin is None:
            check_choice(name, STANDINS, field="datasets", what="no stand-in")
        code = plan.code("scripts/generate_standin.py", standin_file(standin))
        # The annotated queries of a log with text are asked in it, too.
        texts = {"law": dataset.law, "sessions": parts.get(LOG)} if dataset.has_texts else {}
        if encoder:
            generated = {"queries": parts[ANNOTATIONS], "seed": STANDIN_SEED, **texts}
            jobs["encode"][name] = {
                "inputs": [],
                "trains": True,
                "params": {**encoding, "generated": generated},
            }
        for split in (*parts, *extra):
            if split in encoded:
                continue
            size = plan.standin_size(name, split)
            jobs["generate_standin"][f"{name}|{split}"] = {
                "inputs": {},
                "params": {"code": code, "standin": standin, "name": name, "split": split,
                           "size": size, "seed": STANDIN_SEED, "texts": texts},
            }  # fmt: skip
        return
    source = dataset.of
    jobs["fetch"][name] = {
        "inputs": {},
        "params": {
            "code": plan.code("scripts/fetch_dataset.py"),
            "source": dumped(source),
            "folder": dataset.folder,
        },
    }
    manifest = plan.file("manifest", dataset=name)
    if encoder:
        params = {**encoding, "generated": None}
        jobs["encode"][name] = {"inputs": [manifest], "params": params}
    reader = FOLDER.relative_to(ROOT) / f"{source.format}.py"
    readers = [reader] if source.format in FORMATS else []
    for split in (*SPLITS, LOG, PAGES, DOCUMENTS, ANNOTATIONS, IDS):
        if split in encoded:
            continue
        jobs["parse"][f"{name}|{split}"] = {
            "inputs": [manifest],
            "params": {
                "code": plan.code("scripts/parse_dataset.py", *readers),
                "split": split,
                "format": source.format,
                "label_max": source.label_max,
                "width": source.width,
                "reading": dict(source.reading),
            },
        }
