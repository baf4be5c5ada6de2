"""The jobs that make a data set: a stand-in is generated, files are fetched and parsed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
    inputs, generated = [], None
    if dataset.is_standin:
        parts = dataset.standin.get(plan.config.scale, {})
        extra = (PAGES, DOCUMENTS) if LOG in parts else ()
        standin = standin_of(name, dataset)
        if standin is None:
            check_choice(name, STANDINS, field="datasets", what="no stand-in")
        about: dict[str, Any] = {"seed": STANDIN_SEED}
        # The annotated queries of a log with text are asked in it, too.
        texts = {"law": dataset.law, "sessions": parts.get(LOG)} if dataset.has_texts else {}
        generated = {"queries": parts.get(ANNOTATIONS), **about, **texts}
        about |= {"standin": standin, "name": name, "texts": texts}
        for split in (*parts, *extra):
            if split not in encoded:
                size = plan.standin_size(name, split)
                jobs["generate_standin"][f"{name}|{split}"] = plan.job(
                    "generate_standin", {}, standin_file(standin), **about, split=split, size=size
                )
    else:
        source = dataset.of
        about = {"source": dumped(source), "folder": dataset.folder}
        jobs["fetch"][name] = plan.job("fetch_dataset", {}, **about)
        inputs = [plan.file("manifest", dataset=name)]
        reader = FOLDER.relative_to(ROOT) / f"{source.format}.py"
        readers = [reader] if source.format in FORMATS else []
        reading = {"format": source.format, "reading": dict(source.reading)}
        reading |= {"label_max": source.label_max, "width": source.width}
        for split in (*SPLITS, LOG, PAGES, DOCUMENTS, ANNOTATIONS, IDS):
            if split not in encoded:
                jobs["parse"][f"{name}|{split}"] = plan.job(
                    "parse_dataset", inputs, *readers, split=split, **reading
                )
    if encoder:
        jobs["encode"][name] = plan.job(
            "encode",
            inputs,
            trains=dataset.is_standin,
            encoder=encoder.plain(),
            generated=generated,
        )
