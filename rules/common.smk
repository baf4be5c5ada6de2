# Functions that several rules use; no rules.
from dataclasses import asdict


def code(*sources):
    """Digest of the code behind a rule, as a parameter: an edit reruns what depends on it."""
    return code_digest(*sources, root=Path(workflow.basedir))


def experiment(wildcards):
    return EXPERIMENTS[wildcards.paper]


def is_standin(dataset):
    return config["datasets"][dataset].get("folder") is None


def datasets(standin):
    """Regular expression of the data sets that are generated, or that are read from files."""
    return "|".join(name for name in config["datasets"] if is_standin(name) == standin) or "(?!)"


def rankings(dataset):
    return {split: f"{RESULTS}/rankings/{dataset}/{split}.parquet" for split in SPLITS}


def policy_file(paper, log, seed):
    """The ranker's scores that a log's policy is made of."""
    experiment = EXPERIMENTS[paper]
    log = experiment.logs[log]
    name = f"{log['relevance']}-{log['ranker']}"
    return f"{RESULTS}/policies/{paper}/{experiment.dataset}/{name}/{seed}.parquet"


def clicks_file(paper, log, seed):
    return f"{RESULTS}/clicks/{paper}/{EXPERIMENTS[paper].dataset}/{log}/{seed}.parquet"


def fit_files(paper, needs=None):
    """The results of the given settings and studies (of all of them if None), every seed."""
    experiment = EXPERIMENTS[paper]
    needs = [*experiment.settings, *experiment.studies] if needs is None else needs
    return [
        f"{RESULTS}/fits/{paper}/{need}/{seed}.parquet"
        for need in needs
        for seed in experiment.seeds
    ]
