"""Nowhere does the project turn data into code: no pickle, no eval, no shell, safe YAML only."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("twotowers", "scripts", "papers", "benchmarks")
# What replays sessions as others do runs in an environment of its own, on our simulations.
OTHERS = ROOT / "benchmarks" / "clax"
SOURCES = sorted(
    path
    for folder in FOLDERS
    for path in (ROOT / folder).rglob("*.py")
    if OTHERS not in path.parents
)

MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "joblib", "shelve", "marshal", "torch"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {
    *("read_pickle", "to_pickle", "system", "popen", "getoutput", "getstatusoutput"),
    *("unsafe_load", "unsafe_load_all", "full_load", "full_load_all", "extractall"),
}
REFUSED_ARGUMENTS = {"allow_pickle", "shell"}


def findings(text: str):
    """(line, what) of each place where data may become code."""
    tree = ast.parse(text)
    safe = {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and [ast.unparse(b) for b in node.bases] == ["yaml.SafeLoader"]
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", None)
            names = [module] if module else [alias.name for alias in node.names]
            for name in names:
                if name.split(".")[0] in MODULES:
                    yield node.lineno, f"imports {name}"
        if not isinstance(node, ast.Call):
            continue
        called = ast.unparse(node.func)
        method = called.rpartition(".")[2]
        if called in CALLS or ("." in called and method in METHODS):
            yield node.lineno, f"calls {called}"
        if called in ("yaml.load", "yaml.load_all"):
            loaders = [*node.args[1:], *(word.value for word in node.keywords)]
            if [ast.unparse(loader) in {"yaml.SafeLoader", *safe} for loader in loaders] != [True]:
                yield node.lineno, f"calls {called} without a safe loader"
        for word in node.keywords:
            if word.arg in REFUSED_ARGUMENTS and ast.unparse(word.value) != "False":
                yield node.lineno, f"passes {word.arg}"


@pytest.mark.fault("pickles, eval, shells and unsafe YAML", "nowhere in the project's code")
def test_data_never_becomes_code():
    assert len(SOURCES) > 80
    found = [
        f"{path.relative_to(ROOT)}:{line} {what}"
        for path in SOURCES
        for line, what in findings(path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "import torch.nn",
        "pd.read_pickle(path)",
        "np.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=flag)",
        "eval(text)",
        "exec(text)",
        "os.system(text)",
        "subprocess.run(text, shell=True)",
        "yaml.load(text)",
        "yaml.load(text, yaml.Loader)",
        "yaml.load(text, Loader=yaml.FullLoader)",
        "yaml.unsafe_load(text)",
        "archive.extractall(folder)",
    ],
)
def test_each_way_would_be_found(line):
    assert len(list(findings(line))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "yaml.safe_load(text)",
        "yaml.load(text, yaml.SafeLoader)",
        "class Own(yaml.SafeLoader): pass\nyaml.load(text, Own)",
        "np.load(path, allow_pickle=False)",
        "re.compile(text)",
        "subprocess.run(words, shell=False)",
    ],
)
def test_safe_ways_are_not(text):
    assert list(findings(text)) == []
