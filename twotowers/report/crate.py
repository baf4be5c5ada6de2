"""The record of a run as an RO-Crate: what was made, from what, by which code, where and when.

A Workflow Run Crate 0.5 on RO-Crate 1.1 (https://w3id.org/ro/wfrun/workflow/0.5), written as plain
JSON-LD: everything is an entity in one flat list, and entities refer to each other by '@id'.
"""

from __future__ import annotations

import json
import mimetypes
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from urllib.parse import quote

from twotowers.files.artefacts import sha256

METADATA = "ro-crate-metadata.json"
SPECIFICATION = "https://w3id.org/ro/crate/1.1"
PROFILES = {
    "https://w3id.org/ro/wfrun/process/0.5": "Process Run Crate",
    "https://w3id.org/ro/wfrun/workflow/0.5": "Workflow Run Crate",
    "https://w3id.org/workflowhub/workflow-ro-crate/1.0": "Workflow RO-Crate",
}
LANGUAGE = "https://w3id.org/workflowhub/workflow-ro-crate#snakemake"
LICENCE = "https://spdx.org/licenses/MIT"
AUTHORS = {"@id": "#authors", "@type": "Organization", "name": "The Two Towers developers"}
# What mimetypes knows depends on the machine.
FORMATS = {".csv": "text/csv", ".tex": "application/x-tex", ".svg": "image/svg+xml"}


def build_crate(
    folder: str | Path,
    *,
    workflow: str | Path,
    outputs: Iterable[str | Path],
    data: Sequence[Mapping[str, object]],
    config: Mapping[str, object],
    version: str,
    software: Mapping[str, str],
    lock: str | Path,
    environment: Mapping[str, str],
    device: str,
    started: str | None,
    ended: str,
) -> dict:
    """The crate of a folder.

    Args:
        folder: what the crate describes; `workflow` and `outputs` lie below it.
        workflow: the Snakefile.
        outputs: every file that the run made.
        data: what was read: files as {'name', 'path', 'sha256', 'bytes'}, identified by their
            content instead of a place on this machine; anything else as {'name', 'value'}.
        config: the configuration, by key.
        version: the code's.
        software: versions by name.
        lock: the file that pins the environment.
        environment: variables that the jobs ran under.
        device: what was computed on.
        started, ended: ISO 8601; `started` is None where no log tells.

    Returns:
        JSON-LD, as `json.dump` takes it.
    """
    folder = Path(folder)
    main = _file(workflow, folder) | {
        "@type": ["File", "SoftwareSourceCode", "ComputationalWorkflow"],
        "version": version,
        "programmingLanguage": _link(LANGUAGE),
    }
    made = [_file(path, folder) for path in outputs]
    pins = _read(Path(lock).name, sha256(lock), Path(lock).stat().st_size)
    read = [
        _read(f"{part['name']}/{Path(part['path']).name}", part["sha256"], part["bytes"])
        if "path" in part
        else _value(f"data-{part['name']}", part["name"], part["value"])
        for part in data
    ]
    packages = [
        {"@id": f"#{name}", "@type": "SoftwareApplication", "name": name, "softwareVersion": number}
        for name, number in software.items()
    ]
    main["softwareRequirements"] = _links([pins, *packages])
    knobs = [_value(f"config-{name}", name, value) for name, value in config.items()]
    variables = [_value(f"env-{name}", name, value) for name, value in environment.items()]
    machine = _value("device", "device", device)
    run = {
        "@id": "#run",
        "@type": "CreateAction",
        "name": "The run that made these figures",
        "description": "The newest run, and earlier ones as far as their results still stood",
        "instrument": _link(main["@id"]),
        "object": _links([*read, *knobs]),
        "result": _links(made),
        "environment": _links(variables),
        "additionalProperty": _link(machine["@id"]),
        **({"startTime": started} if started else {}),
        "endTime": ended,
        "actionStatus": "http://schema.org/CompletedActionStatus",
    }
    files = [part for part in read if part["@type"] == "File"]
    root = {
        "@id": "./",
        "@type": "Dataset",
        "name": "Two Towers: regenerated tables and figures",
        "description": "Tables and figures of papers on unbiased learning to rank, regenerated, "
        "and the verdicts on their claims",
        "datePublished": ended,
        "license": _link(LICENCE),
        "author": _link(AUTHORS["@id"]),
        "conformsTo": [_link(profile) for profile in PROFILES],
        "hasPart": _links([main, *made, *files, pins]),
        "mainEntity": _link(main["@id"]),
        "mentions": _link(run["@id"]),
    }
    entities = [
        {
            "@id": METADATA,
            "@type": "CreativeWork",
            "about": _link("./"),
            # Workflow RO-Crate asks for itself here too, the other profiles do not.
            "conformsTo": [_link(SPECIFICATION), _link(list(PROFILES)[-1])],
        },
        root,
        main,
        run,
        *made,
        *read,
        pins,
        *packages,
        *knobs,
        *variables,
        machine,
        AUTHORS,
        *(
            {"@id": url, "@type": "CreativeWork", "name": name, "version": url.rsplit("/")[-1]}
            for url, name in PROFILES.items()
        ),
        {"@id": LICENCE, "@type": "CreativeWork", "name": "MIT", "description": "MIT License"},
        {
            "@id": LANGUAGE,
            "@type": "ComputerLanguage",
            "name": "Snakemake",
            "url": "https://snakemake.readthedocs.io",
        },
    ]
    context = [f"{SPECIFICATION}/context", "https://w3id.org/ro/terms/workflow-run/context"]
    return {"@context": context, "@graph": entities}


def _file(path: str | Path, folder: Path) -> dict:
    """A file of the crate."""
    name = Path(path).relative_to(folder).as_posix()
    return _described(quote(name), name, sha256(path), Path(path).stat().st_size)


def _read(name: str, digest: str, size: int) -> dict:
    """A file that was read and is not in the crate: known by content (RFC 6920), not by place."""
    content = urlsafe_b64encode(bytes.fromhex(digest)).decode().rstrip("=")
    return _described(f"ni:///sha-256;{content}", name, digest, size)


def _described(identifier: str, name: str, digest: str, size: int) -> dict:
    kind = FORMATS.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    return {
        "@id": identifier,
        "@type": "File",
        "name": name,
        "encodingFormat": kind,
        "contentSize": str(size),
        "sha256": digest,
    }


def _value(identifier: str, name: str, value: object) -> dict:
    text = value if isinstance(value, str) else json.dumps(value)
    return {"@id": f"#{quote(identifier)}", "@type": "PropertyValue", "name": name, "value": text}


def _link(identifier: str) -> dict:
    return {"@id": identifier}


def _links(entities: Iterable[Mapping]) -> list[dict]:
    return [_link(entity["@id"]) for entity in entities]
