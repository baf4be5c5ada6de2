# Fits and studies. One job per setting and seed fits all lanes.


rule fit:
    input:
        unpack(lambda w: PLAN.fit_inputs(w.paper, w.setting, w.seed)),
    output:
        ensure(PLAN.file("fit"), non_empty=True),
    log:
        PLAN.log("fit"),
    wildcard_constraints:
        setting=PLAN.constraint("setting"),
    priority: lambda w: ORDER.of_result(w.paper, w.setting, w.seed)
    conda:
        PLAN.environment("fit")
    params:
        code=lambda w: code("scripts/fit_setting.py", *PLAN.fit_sources(w.paper, w.setting)),
        paper=lambda w: w.paper,
        name=lambda w: w.setting,
        setting=lambda w: PLAN.fit_parameters(w.paper, w.setting),
        positions=lambda w: PLAN.positions(
            w.paper, PLAN.experiments[w.paper].settings[w.setting]["log"]
        ),
        seed=lambda w: int(w.seed),
    message:
        "Fit {wildcards.setting} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/fit_setting.py"


rule study:
    input:
        unpack(lambda w: PLAN.study_inputs(w.paper, w.study)),
    output:
        ensure(PLAN.file("study"), non_empty=True),
    log:
        PLAN.log("study"),
    wildcard_constraints:
        study=PLAN.constraint("study"),
    priority: lambda w: ORDER.of_result(w.paper, w.study, w.seed)
    conda:
        PLAN.environment("study")
    params:
        code=lambda w: code("scripts/run_study.py", *PLAN.study_sources(w.paper, w.study)),
        paper=lambda w: w.paper,
        name=lambda w: w.study,
        module=lambda w: PLAN.study_module(w.paper, w.study),
        parameters=lambda w: PLAN.study_parameters(w.paper, w.study),
        seed=lambda w: int(w.seed),
    message:
        "Run study {wildcards.study} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/run_study.py"
