# Data sets: downloaded, checked and parsed, or generated; then preprocessed as published.
from twotowers.datasets.sources import resolve


def source(dataset):
    """The entry of the table of data sources behind a data set."""
    return resolve(config["datasets"][dataset]["source"])


rule generate_standin:
    output:
        ensure(f"{RESULTS}/raw/{{dataset}}/{{split}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/raw/{{dataset}}/{{split}}.log",
    wildcard_constraints:
        dataset=datasets(standin=True),
    params:
        code=code("scripts/generate_standin.py"),
        name=lambda wildcards: wildcards.dataset,
        split=lambda wildcards: wildcards.split,
        queries=lambda wildcards: config["datasets"][wildcards.dataset]["standin"][
            config["scale"]
        ][wildcards.split],
        seed=0,
    script:
        "../scripts/generate_standin.py"


rule fetch:
    output:
        f"{RESULTS}/raw/{{dataset}}/manifest.json",
    log:
        f"{RESULTS}/logs/raw/{{dataset}}/manifest.log",
    wildcard_constraints:
        dataset=datasets(standin=False),
    retries: 2
    params:
        code=code("scripts/fetch_dataset.py"),
        source=lambda wildcards: config["datasets"][wildcards.dataset]["source"],
        folder=lambda wildcards: config["datasets"][wildcards.dataset]["folder"],
    script:
        "../scripts/fetch_dataset.py"


rule parse:
    input:
        f"{RESULTS}/raw/{{dataset}}/manifest.json",
    output:
        ensure(f"{RESULTS}/raw/{{dataset}}/{{split}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/raw/{{dataset}}/{{split}}.log",
    wildcard_constraints:
        dataset=datasets(standin=False),
    params:
        code=code("scripts/parse_letor.py"),
        split=lambda wildcards: wildcards.split,
        label_max=lambda wildcards: source(wildcards.dataset).label_max,
        width=lambda wildcards: source(wildcards.dataset).width,
    script:
        "../scripts/parse_letor.py"


rule preprocess:
    input:
        f"{RESULTS}/raw/{{dataset}}/{{split}}.parquet",
    output:
        ensure(f"{RESULTS}/rankings/{{dataset}}/{{split}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/rankings/{{dataset}}/{{split}}.log",
    params:
        code=code("scripts/preprocess.py"),
        top=lambda wildcards: next(
            paper.top for paper in EXPERIMENTS.values() if paper.dataset == wildcards.dataset
        ),
        label_max=lambda wildcards: source(wildcards.dataset).label_max,
    script:
        "../scripts/preprocess.py"
