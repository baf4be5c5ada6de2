# Data sets: downloaded, checked and parsed, or generated. Then they are prepared as published.


rule generate_standin:
    output:
        ensure(PLAN.file("raw"), non_empty=True),
    log:
        PLAN.log("raw"),
    wildcard_constraints:
        dataset=PLAN.constraint("standin"),
    priority: lambda w: ORDER.of_dataset(w.dataset)
    conda:
        PLAN.environment("generate_standin")
    params:
        code=code("scripts/generate_standin.py"),
        name=lambda w: w.dataset,
        split=lambda w: w.split,
        size=lambda w: PLAN.standin_size(w.dataset, w.split),
        seed=lambda w: PLAN.standin(w.dataset)["seed"],
    message:
        "Generate the {wildcards.split} part of a stand-in for {wildcards.dataset}"
    script:
        "../scripts/generate_standin.py"


rule fetch:
    output:
        PLAN.file("manifest"),
    log:
        PLAN.log("manifest"),
    wildcard_constraints:
        dataset=PLAN.constraint("files"),
    priority: lambda w: ORDER.of_dataset(w.dataset)
    retries: 2
    conda:
        PLAN.environment("fetch")
    params:
        code=code("scripts/fetch_dataset.py"),
        source=lambda w: config["datasets"][w.dataset]["source"],
        folder=lambda w: config["datasets"][w.dataset]["folder"],
    message:
        "Fetch {wildcards.dataset} and check its files"
    script:
        "../scripts/fetch_dataset.py"


rule parse:
    input:
        PLAN.file("manifest"),
    output:
        ensure(PLAN.file("raw"), non_empty=True),
    log:
        PLAN.log("raw"),
    wildcard_constraints:
        dataset=PLAN.constraint("files"),
    priority: lambda w: ORDER.of_dataset(w.dataset)
    conda:
        PLAN.environment("parse")
    params:
        code=code("scripts/parse_dataset.py"),
        split=lambda w: w.split,
        format=lambda w: PLAN.source(w.dataset).format,
        label_max=lambda w: PLAN.source(w.dataset).label_max,
        width=lambda w: PLAN.source(w.dataset).width,
        reading=lambda w: dict(PLAN.source(w.dataset).reading),
    message:
        "Read the {wildcards.split} part of {wildcards.dataset}"
    script:
        "../scripts/parse_dataset.py"


rule preprocess:
    input:
        **{split: PLAN.file("raw", split=split) for split in SPLITS},
    output:
        **{split: ensure(path, non_empty=True) for split, path in PLAN.rankings().items()},
    log:
        PLAN.log("rankings"),
    priority: lambda w: ORDER.of_inputs(w.paper)
    conda:
        PLAN.environment("preprocess")
    params:
        code=code("scripts/preprocess.py"),
        steps=lambda w: PLAN.experiments[w.paper].datasets[w.dataset],
        label_max=lambda w: PLAN.source(w.dataset).label_max,
    message:
        "Prepare {wildcards.dataset} as {wildcards.paper} does"
    script:
        "../scripts/preprocess.py"
