# Data sets: downloaded, checked and parsed, or generated. Then they are prepared as published.


rule generate_standin:
    output:
        ensure(PLAN.file("raw"), non_empty=True),
    log:
        PLAN.record("raw"),
    wildcard_constraints:
        dataset=PLAN.constraint("generate_standin", "dataset"),
    priority: PLAN.get("generate_standin", "priority")
    conda:
        "../envs/data.yaml"
    params:
        **PLAN.params("generate_standin"),
    message:
        "Generate the {wildcards.split} part of a stand-in for {wildcards.dataset}"
    script:
        "../scripts/generate_standin.py"


rule encode:
    input:
        PLAN.get("encode", "inputs"),
    output:
        **{
            split: ensure(PLAN.file("raw", split=split), non_empty=True)
            for split in (DOCUMENTS, ANNOTATIONS)
        },
    log:
        PLAN.record("raw", split=DOCUMENTS),
    wildcard_constraints:
        dataset=PLAN.constraint("encode", "dataset"),
    priority: PLAN.get("encode", "priority")
    conda:
        f"../envs/jax-{config['device']}.yaml"
    resources:
        gpu=PLAN.get("encode", "gpu"),
    params:
        **PLAN.params("encode"),
    message:
        "Encode the documents of {wildcards.dataset}"
    script:
        "../scripts/encode.py"


ruleorder: encode > generate_standin
ruleorder: encode > parse


rule fetch:
    output:
        PLAN.file("manifest"),
    log:
        PLAN.record("manifest"),
    wildcard_constraints:
        dataset=PLAN.constraint("fetch", "dataset"),
    priority: PLAN.get("fetch", "priority")
    retries: 2
    conda:
        "../envs/data.yaml"
    params:
        **PLAN.params("fetch"),
    message:
        "Fetch {wildcards.dataset} and check its files"
    script:
        "../scripts/fetch_dataset.py"


rule parse:
    input:
        PLAN.get("parse", "inputs"),
    output:
        ensure(PLAN.file("raw"), non_empty=True),
    log:
        PLAN.record("raw"),
    wildcard_constraints:
        dataset=PLAN.constraint("parse", "dataset"),
    priority: PLAN.get("parse", "priority")
    conda:
        "../envs/data.yaml"
    params:
        **PLAN.params("parse"),
    message:
        "Read the {wildcards.split} part of {wildcards.dataset}"
    script:
        "../scripts/parse_dataset.py"


rule preprocess:
    input:
        unpack(PLAN.get("preprocess", "inputs")),
    output:
        **{split: ensure(path, non_empty=True) for split, path in PLAN.rankings().items()},
    log:
        PLAN.record("rankings"),
    priority: PLAN.get("preprocess", "priority")
    conda:
        "../envs/data.yaml"
    params:
        **PLAN.params("preprocess"),
    message:
        "Prepare {wildcards.dataset} as {wildcards.paper} does"
    script:
        "../scripts/preprocess.py"
