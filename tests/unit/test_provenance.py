"""Digests of code, and versions."""

import re
import subprocess

import pytest

from twotowers.root import ROOT
from twotowers.workflow import provenance
from twotowers.workflow.dataset_jobs import STANDINS, standin_file
from twotowers.workflow.provenance import code_digest, code_version

FILES = {
    "scripts/job.py": '"""A job."""\nfrom twotowers.a import f\n\nf()\n',
    "twotowers/__init__.py": "",
    "twotowers/a.py": '"""Module a."""\n\nfrom twotowers import b\n\n\ndef f():\n'
    '    """Double."""\n    return 2 * b.VALUE  # why\n',
    "twotowers/b.py": 'VALUE = 1\n"""A value."""\n',
    "twotowers/unrelated.py": "VALUE = 1\n",
    "papers/p/study.py": "import twotowers.b\n",
}


@pytest.fixture
def digest(tmp_path):
    """digest(name=text) of scripts/job.py after an edit. Modules are read again."""
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def measure(edits=(), source="scripts/job.py"):
        for name, text in dict(edits).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        for cached in (provenance._read, provenance._imports):
            cached.cache_clear()
        return code_digest(source, root=tmp_path)

    return measure


@pytest.mark.parametrize(
    ("file", "old", "new", "same"),
    [
        ("twotowers/a.py", "Double.", "Twice.", True),
        ("twotowers/a.py", "# why", "# because", True),
        ("twotowers/a.py", "Module a.", "Another\n\nsummary.", True),
        ("twotowers/unrelated.py", "1", "2", True),
        ("papers/p/study.py", "import twotowers.b", "import twotowers.a", True),
        ("scripts/job.py", "f()", "f(); f()", False),
        ("twotowers/a.py", "2 *", "3 *", False),
        ("twotowers/b.py", "1", "2", False),
        ("twotowers/a.py", "return 2 * b.VALUE", "x = 'text'\n    return 2 * b.VALUE", False),
    ],
)
def test_a_digest_follows_the_code_of_imports_and_no_words(digest, file, old, new, same):
    assert old in FILES[file]
    assert (digest({file: FILES[file].replace(old, new)}) == digest(FILES)) == same


def test_digest_of_other_sources_and_of_the_data_of_a_module(digest, tmp_path):
    for name, source in (("page.html", "page.html"), ("twotowers/a.yaml", "scripts/job.py")):
        (tmp_path / name).write_text("a")
        before = digest(source=source)
        (tmp_path / name).write_text("b")
        assert digest(source=source) != before


@pytest.mark.parametrize(
    ("text", "follows"),
    [
        ("from twotowers import LOG, Additive\n", True),
        ("import twotowers as tt\n", True),
        # No import of the whole package, in whichever order.
        ("import ast\n\nfrom twotowers import ROOT\n", False),
        ("from twotowers import ROOT\n\nimport ast\n", False),
        ("if TYPE_CHECKING:\n    from twotowers import Additive\n", False),
        ("if TYPE_CHECKING:\n    import twotowers as tt\n", False),
    ],
)
def test_a_public_name_is_the_module_that_it_comes_from(digest, text, follows):
    module = "twotowers/models/additive.py"
    before = digest({"scripts/job.py": text, module: "VALUE = 1\n"})
    assert (digest({module: "VALUE = 2\n"}) != before) == follows


def test_cycles_end(digest):
    assert digest({"twotowers/b.py": "import twotowers.a\n\nVALUE = 1\n"})


def git(folder, *arguments):
    identity = ["-c", "user.name=a", "-c", "user.email=a@b.c", "-c", "commit.gpgsign=false"]
    subprocess.run(["git", "-C", folder, *identity, *arguments], check=True, capture_output=True)


def test_version_clean_and_dirty(tmp_path):
    git(tmp_path, "init", "-q")
    (tmp_path / "a").write_text("1")
    git(tmp_path, "add", "a")
    git(tmp_path, "commit", "-q", "-m", "one")
    clean = code_version(tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", clean)
    (tmp_path / "a").write_text("2")
    assert code_version(tmp_path) == f"{clean}-dirty"
    git(tmp_path, "commit", "-q", "-a", "-m", "two")
    assert code_version(tmp_path) not in (clean, f"{clean}-dirty")
    clean = code_version(tmp_path)
    assert re.fullmatch("[0-9a-f]{12}", clean)
    for name, ending in (("b", ""), ("papers/p/recorded/laptop.csv", ""), ("papers/p/x", "-dirty")):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
        assert code_version(tmp_path) == f"{clean}{ending}", "a paper that is in no commit"


def test_version_outside_git(tmp_path, monkeypatch):
    assert code_version(tmp_path) == "unknown"
    monkeypatch.setenv("PATH", str(tmp_path))  # no git at all
    assert code_version(tmp_path) == "unknown"


def test_training_is_code_of_policies_and_fits_and_of_no_data_set():
    gradient = ROOT / "twotowers" / "fitting" / "gradient.py"

    def trains(*sources):
        return gradient in provenance._closure([ROOT / source for source in sources], ROOT)

    # A setting names its method, and the script imports none.
    assert trains("scripts/fit_setting.py", "twotowers/methods/likelihood.py")
    assert trains("scripts/train_policy.py")
    assert not trains("scripts/generate_standin.py", "scripts/preprocess.py")


@pytest.mark.parametrize("standin", sorted({*STANDINS.values(), "baidu_files"}))
def test_a_stand_in_depends_on_no_law_of_another(standin):
    job = [ROOT / "scripts" / "generate_standin.py", ROOT / standin_file(standin)]
    reached = provenance._closure(job, ROOT)
    names = {path.stem for path in reached if path.parent.name == "standins"}
    assert names & {"rankings", "logs", "wscd", "uva", "baidu_files"} == {standin}
