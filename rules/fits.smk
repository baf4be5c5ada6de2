# Fits and studies. One job per setting and seed fits all lanes.


rule fit:
    input:
        unpack(PLAN.get("fit", "inputs")),
    output:
        ensure(PLAN.file("fit"), non_empty=True),
    log:
        PLAN.record("fit"),
    wildcard_constraints:
        setting=PLAN.constraint("fit", "setting"),
    priority: PLAN.get("fit", "priority")
    conda:
        f"../envs/jax-{config['device']}.yaml"
    resources:
        gpu=PLAN.get("fit", "gpu"),
    params:
        **PLAN.params("fit"),
    message:
        "Fit {wildcards.setting} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/fit_setting.py"


rule study:
    input:
        unpack(PLAN.get("study", "inputs")),
    output:
        ensure(PLAN.file("study"), non_empty=True),
    log:
        PLAN.record("study"),
    wildcard_constraints:
        study=PLAN.constraint("study", "study"),
    priority: PLAN.get("study", "priority")
    conda:
        f"../envs/jax-{config['device']}.yaml"
    resources:
        gpu=PLAN.get("study", "gpu"),
    params:
        **PLAN.params("study"),
    message:
        "Run study {wildcards.study} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/run_study.py"
