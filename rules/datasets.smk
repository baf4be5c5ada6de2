# Data sets: downloaded, checked and parsed, or generated; then preprocessed as published.


rule generate_standin:
    output:
        ensure(f"{RESULTS}/raw/{{dataset}}/{{split}}.parquet", non_empty=True),
    params:
        code=code("scripts/generate_standin.py"),
        name=lambda wildcards: wildcards.dataset,
        split=lambda wildcards: wildcards.split,
        queries=lambda wildcards: config["datasets"][wildcards.dataset]["standin"][
            config["scale"]
        ][wildcards.split],
        seed=0,
    wildcard_constraints:
        dataset=datasets(standin=True),
    log:
        f"{RESULTS}/logs/raw/{{dataset}}/{{split}}.log",
    script:
        "../scripts/generate_standin.py"


rule preprocess:
    input:
        f"{RESULTS}/raw/{{dataset}}/{{split}}.parquet",
    output:
        ensure(f"{RESULTS}/rankings/{{dataset}}/{{split}}.parquet", non_empty=True),
    params:
        code=code("scripts/preprocess.py"),
        top=25,
        label_max=4,
    log:
        f"{RESULTS}/logs/rankings/{{dataset}}/{{split}}.log",
    script:
        "../scripts/preprocess.py"
