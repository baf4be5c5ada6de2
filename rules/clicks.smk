# Simulated click logs. One job per log and seed makes all lanes and splits.


rule clicks:
    input:
        unpack(lambda w: PLAN.clicks_inputs(w.paper, w.log, w.seed)),
    output:
        ensure(PLAN.file("clicks"), non_empty=True),
    log:
        PLAN.log("clicks"),
    priority: lambda w: ORDER.of_inputs(w.paper)
    conda:
        PLAN.environment("clicks")
    params:
        code=lambda w: code("scripts/simulate_clicks.py", *PLAN.clicks_sources(w.paper, w.log)),
        paper=lambda w: w.paper,
        log=lambda w: PLAN.clicks_parameters(w.paper, w.log),
        positions=lambda w: PLAN.positions(w.paper, w.log),
        seed=lambda w: int(w.seed),
    message:
        "Simulate clicks of log {wildcards.log} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/simulate_clicks.py"
