# Simulated click logs. One job per log and seed makes all lanes and splits.


rule clicks:
    input:
        unpack(PLAN.get("clicks", "inputs")),
    output:
        ensure(PLAN.file("clicks"), non_empty=True),
    log:
        PLAN.record("clicks"),
    priority: PLAN.get("clicks", "priority")
    conda:
        "../envs/jax-cpu.yaml"
    params:
        **PLAN.params("clicks"),
    message:
        "Simulate clicks of log {wildcards.log} of {wildcards.paper}, seed {wildcards.seed}"
    script:
        "../scripts/simulate_clicks.py"
