# Simulated click logs: every lane and split of a log in one job per seed.


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
        code=lambda w: code("scripts/simulate_clicks.py", *PLAN.clicks_sources(w.paper, w.log)),
        paper=lambda w: w.paper,
        log=lambda w: PLAN.clicks_parameters(w.paper, w.log),
        positions=lambda w: PLAN.experiments[w.paper].positions,
        seed=lambda w: int(w.seed),
    message:
        "Simulate clicks of log {wildcards.log} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/simulate_clicks.py"
