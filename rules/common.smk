# Functions that several rules use; no rules.
from twotowers.datasets.sources import resolve

# The environment of the jobs that train, under `--sdm conda`.
TRAINING = f"../envs/jax-{config['device']}.yaml"


def code(*sources):
    """Digest of the code behind a rule, as a parameter: an edit reruns what depends on it."""
    return code_digest(*sources, root=Path(workflow.basedir))


def experiment(wildcards):
    return EXPERIMENTS[wildcards.paper]


def is_standin(dataset):
    return config["datasets"][dataset].get("folder") is None


def datasets(generated):
    """Regular expression of the data sets that are generated, or that are read from files."""
    return "|".join(name for name in config["datasets"] if is_standin(name) == generated) or "(?!)"


def standin(dataset):
    """How a data set is generated: queries or sessions of each part, and the seed."""
    return {"sizes": config["datasets"][dataset]["standin"][config["scale"]], "seed": 0}


def source(dataset):
    """The entry of the table of data sources behind a data set."""
    return resolve(config["datasets"][dataset]["source"])


def rankings(paper, dataset):
    return {split: f"{RESULTS}/rankings/{paper}/{dataset}/{split}.parquet" for split in SPLITS}


def policy_file(paper, dataset, relevance, ranker, seed):
    return f"{RESULTS}/policies/{paper}/{dataset}/{relevance}-{ranker}/{seed}.parquet"


def log_policy(paper, log, seed):
    """The ranker's scores that a log's policy is made of."""
    log = EXPERIMENTS[paper].logs[log]
    return policy_file(paper, log["dataset"], log["relevance"], log["ranker"], seed)


def clicks_file(paper, log, seed):
    dataset = EXPERIMENTS[paper].logs[log]["dataset"]
    return f"{RESULTS}/clicks/{paper}/{dataset}/{log}/{seed}.parquet"


def used_datasets(paper, needs):
    """Data sets behind the given settings and studies."""
    experiment = EXPERIMENTS[paper]
    logs = [
        experiment.logs[experiment.settings[need]["log"]]
        for need in needs
        if need in experiment.settings
    ]
    studies = [experiment.studies[need] for need in needs if need in experiment.studies]
    return list(dict.fromkeys(user["dataset"] for user in logs + studies if "dataset" in user))


def used_seeds(paper, needs):
    """Seeds behind the given settings and studies."""
    return sorted({seed for need in needs for seed in EXPERIMENTS[paper].seeds_of(need)})


def fit_files(paper, needs=None):
    """The results of the given settings and studies (of all of them if None), every seed."""
    experiment = EXPERIMENTS[paper]
    needs = [*experiment.settings, *experiment.studies] if needs is None else needs
    return [
        f"{RESULTS}/fits/{paper}/{need}/{seed}.parquet"
        for need in needs
        for seed in experiment.seeds_of(need)
    ]
