"""The record of a run: complete, consistent, and valid for its profiles."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from scripts.build_crate import parts
from twotowers.report.crate import METADATA, PROFILES, build_crate

TEXTS = {
    "index.html": "<html></html>",
    "Snakefile": "rule all:\n",
    "paper/fig 1.csv": "value\n1\n",
    "paper/fig 1.pdf": "%PDF",
}
DIGEST = "ab" * 32
ENDED = "2026-01-01T00:00:09+00:00"
FACTS = {
    "config": {"scale": "smoke", "papers": ["paper"]},
    "version": "0123-dirty",
    "software": {"Python": "3.11.7", "jax": "0.10.2"},
    "environment": {"NPROC": "1"},
    "device": "cpu",
    "started": "2026-01-01T00:00:00+00:00",
    "ended": ENDED,
}


@pytest.fixture
def folder(tmp_path) -> Path:
    folder = tmp_path / "figures"
    for name, text in TEXTS.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "requirements.txt").write_text("jax==0.10.2\n")
    manifest = {"train": {"path": "/secret/train.txt", "sha256": DIGEST, "bytes": 12}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    return folder


@pytest.fixture
def crate(folder) -> dict:
    """The crate of the folder, written into it as well."""
    data = [
        *parts("mine", manifest=str(folder.parent / "manifest.json")),
        *parts("mslr30k", generated={"sizes": {"train": 2}, "seed": 0}),
    ]
    made = build_crate(
        folder,
        workflow=folder / "Snakefile",
        outputs=[folder / name for name in TEXTS if name != "Snakefile"],
        lock=folder.parent / "requirements.txt",
        data=data,
        **FACTS,
    )
    (folder / METADATA).write_text(json.dumps(made))
    return made


@pytest.fixture
def entities(crate) -> dict[str, dict]:
    found = {entity["@id"]: entity for entity in crate["@graph"]}
    assert len(found) == len(crate["@graph"]), "an entity is described once"
    return found


def references(value) -> set[str]:
    if isinstance(value, dict):
        return {value["@id"]} if value.keys() == {"@id"} else references(list(value.values()))
    return set().union(*map(references, value)) if isinstance(value, list) else set()


def test_every_reference_leads_to_an_entity_and_every_entity_is_referred_to(entities):
    referred = references(list(entities.values()))
    outside = {"https://w3id.org/ro/crate/1.1"}
    assert referred - outside == entities.keys() - {METADATA}


def test_outputs_have_the_checksums_of_their_files(entities, folder):
    results = [link["@id"] for link in entities["#run"]["result"]]
    assert results == ["index.html", "paper/fig%201.csv", "paper/fig%201.pdf"]
    for identifier in [*results, "Snakefile"]:
        entity = entities[identifier]
        text = TEXTS[entity["name"]].encode()
        assert entity["sha256"] == hashlib.sha256(text).hexdigest()
        assert entity["contentSize"] == str(len(text))
    assert entities["paper/fig%201.csv"]["encodingFormat"] == "text/csv"


def test_inputs_are_what_the_manifest_says_or_how_they_were_generated(entities, crate):
    objects = [entities[link["@id"]] for link in entities["#run"]["object"]]
    values = {entity["name"]: entity.get("value", entity.get("sha256")) for entity in objects}
    assert values == {
        "mine/train.txt": DIGEST,
        "stand-in for mslr30k": '{"sizes": {"train": 2}, "seed": 0}',
        "scale": "smoke",
        "papers": '["paper"]',
    }
    assert "/secret" not in json.dumps(crate)


def test_code_environment_device_and_times_are_there(entities, folder):
    run, main = entities["#run"], entities["Snakefile"]
    assert main["version"] == "0123-dirty"
    needs = [entities[link["@id"]] for link in main["softwareRequirements"]]
    lock = hashlib.sha256((folder.parent / "requirements.txt").read_bytes()).hexdigest()
    assert needs[0]["sha256"] == lock
    assert {need["name"]: need["softwareVersion"] for need in needs[1:]} == FACTS["software"]
    (variable,) = (entities[link["@id"]] for link in run["environment"])
    assert (variable["name"], variable["value"]) == ("NPROC", "1")
    assert entities[run["additionalProperty"]["@id"]]["value"] == "cpu"
    assert (run["startTime"], run["endTime"]) == (FACTS["started"], ENDED)


def test_what_the_profiles_ask_for_is_there(entities):
    root = entities["./"]
    assert root.keys() >= {"name", "description", "license", "datePublished", "hasPart"}
    assert [link["@id"] for link in root["conformsTo"]] == list(PROFILES)
    main = entities[root["mainEntity"]["@id"]]
    assert set(main["@type"]) == {"File", "SoftwareSourceCode", "ComputationalWorkflow"}
    assert main["programmingLanguage"]["@id"] in entities
    assert entities[root["mentions"]["@id"]]["instrument"] == root["mainEntity"]
    files = {name for name, entity in entities.items() if "File" in entity["@type"]}
    assert files == {link["@id"] for link in root["hasPart"]}


def test_a_run_whose_start_no_log_tells_has_none(folder):
    made = build_crate(
        folder,
        workflow=folder / "Snakefile",
        outputs=[],
        lock=folder.parent / "requirements.txt",
        data=[],
        **FACTS | {"started": None},
    )
    (run,) = (entity for entity in made["@graph"] if entity["@type"] == "CreateAction")
    assert "startTime" not in run
    assert run["endTime"] == ENDED


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the validator's own
def test_the_profiles_own_validator_agrees(crate, folder):
    """The validator needs an older `rich`, so it is not in the lock: pip install roc-validator."""
    services = pytest.importorskip("rocrate_validator.services")
    result = services.validate(
        services.ValidationSettings(
            rocrate_uri=str(folder),
            profile_identifier="workflow-run-crate",
            requirement_severity="REQUIRED",
        )
    )
    assert [issue.message for issue in result.get_issues()] == []
