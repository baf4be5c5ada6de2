# Data sets: downloaded, checked and parsed, or generated; then preprocessed as published.


rule generate_standin:
    output:
        ensure(f"{RESULTS}/raw/{{dataset}}/{{split}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/raw/{{dataset}}/{{split}}.log",
    wildcard_constraints:
        dataset=datasets(generated=True),
    conda:
        "../envs/data.yaml"
    params:
        code=code("scripts/generate_standin.py"),
        name=lambda wildcards: wildcards.dataset,
        split=lambda wildcards: wildcards.split,
        size=lambda wildcards: standin(wildcards.dataset)["sizes"][wildcards.split],
        seed=lambda wildcards: standin(wildcards.dataset)["seed"],
    script:
        "../scripts/generate_standin.py"


rule fetch:
    output:
        f"{RESULTS}/raw/{{dataset}}/manifest.json",
    log:
        f"{RESULTS}/logs/raw/{{dataset}}/manifest.log",
    wildcard_constraints:
        dataset=datasets(generated=False),
    retries: 2
    conda:
        "../envs/data.yaml"
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
        dataset=datasets(generated=False),
    conda:
        "../envs/data.yaml"
    params:
        code=code("scripts/parse_dataset.py"),
        split=lambda wildcards: wildcards.split,
        format=lambda wildcards: source(wildcards.dataset).format,
        label_max=lambda wildcards: source(wildcards.dataset).label_max,
        width=lambda wildcards: source(wildcards.dataset).width,
    script:
        "../scripts/parse_dataset.py"


rule preprocess:
    input:
        **{split: f"{RESULTS}/raw/{{dataset}}/{split}.parquet" for split in SPLITS},
    output:
        **{
            split: ensure(path, non_empty=True)
            for split, path in rankings("{paper}", "{dataset}").items()
        },
    log:
        f"{RESULTS}/logs/rankings/{{paper}}/{{dataset}}.log",
    conda:
        "../envs/data.yaml"
    params:
        code=code("scripts/preprocess.py"),
        steps=lambda wildcards: experiment(wildcards).datasets[wildcards.dataset],
        label_max=lambda wildcards: source(wildcards.dataset).label_max,
    script:
        "../scripts/preprocess.py"
