# Click logs: every strength and temperature of a log, every split, in one job per seed.


rule clicks:
    input:
        policy=lambda wildcards: log_policy(wildcards.paper, wildcards.log, wildcards.seed),
    output:
        ensure(f"{RESULTS}/clicks/{{paper}}/{{dataset}}/{{log}}/{{seed}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/clicks/{{paper}}/{{dataset}}/{{log}}/{{seed}}.log",
    # Before any fit, so that the longest of them can be first.
    priority: 1
    conda:
        "../envs/data.yaml"
    params:
        code=code("scripts/simulate_clicks.py"),
        strengths=lambda wildcards: experiment(wildcards).logs[wildcards.log]["strengths"],
        temperatures=lambda wildcards: experiment(wildcards).logs[wildcards.log]["temperatures"],
        queries=lambda wildcards: experiment(wildcards).logs[wildcards.log].get("queries"),
        sessions=lambda wildcards: experiment(wildcards).sessions,
        positions=lambda wildcards: experiment(wildcards).positions,
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/simulate_clicks.py"
