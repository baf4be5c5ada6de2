# Click logs: every strength and temperature of a log, every split, in one job per seed.


rule clicks:
    input:
        unpack(lambda w: PLAN.clicks_inputs(w.paper, w.log, w.seed)),
    output:
        ensure(PLAN.file("clicks"), non_empty=True),
    log:
        PLAN.log("clicks"),
    priority: FIRST
    conda:
        PLAN.environment("clicks")
    params:
        code=code("scripts/simulate_clicks.py"),
        strengths=lambda w: PLAN.clicks_parameters(w.paper, w.log)["strengths"],
        temperatures=lambda w: PLAN.clicks_parameters(w.paper, w.log)["temperatures"],
        queries=lambda w: PLAN.clicks_parameters(w.paper, w.log)["queries"],
        sessions=lambda w: PLAN.clicks_parameters(w.paper, w.log)["sessions"],
        positions=lambda w: PLAN.clicks_parameters(w.paper, w.log)["positions"],
        seed=lambda w: int(w.seed),
    message:
        "Simulate clicks of log {wildcards.log} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/simulate_clicks.py"
