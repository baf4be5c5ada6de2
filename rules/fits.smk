# Fits and studies. One job per setting and seed fits all lanes.


rule fit:
    input:
        unpack(PLAN.inputs("fit")),
    output:
        ensure(PLAN.file("fit"), non_empty=True),
    log:
        PLAN.record("fit"),
    wildcard_constraints:
        setting=PLAN.constraint("fit", "setting"),
    priority: PLAN.priority("fit")
    conda:
        f"../envs/jax-{config['device']}.yaml"
    resources:
        gpu=PLAN.gpus("fit"),
    params:
        **PLAN.params("fit"),
    message:
        "Fit {wildcards.setting} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/fit_setting.py"


rule study:
    input:
        unpack(PLAN.inputs("study")),
    output:
        ensure(PLAN.file("study"), non_empty=True),
    log:
        PLAN.record("study"),
    wildcard_constraints:
        study=PLAN.constraint("study", "study"),
    priority: PLAN.priority("study")
    conda:
        f"../envs/jax-{config['device']}.yaml"
    resources:
        gpu=PLAN.gpus("study"),
    params:
        **PLAN.params("study"),
    message:
        "Run study {wildcards.study} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/run_study.py"
