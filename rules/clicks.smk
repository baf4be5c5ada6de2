# Simulated click logs. One job per log and seed makes all lanes and splits.


rule clicks:
    input:
        unpack(PLAN.inputs("clicks")),
    output:
        ensure(PLAN.file("clicks"), non_empty=True),
    log:
        PLAN.record("clicks"),
    priority: lambda w: ORDER.of_inputs(w.paper)
    conda:
        PLAN.environment("clicks")
    params:
        **PLAN.params("clicks"),
    message:
        "Simulate clicks of log {wildcards.log} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/simulate_clicks.py"
