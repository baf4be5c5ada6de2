# Logging policies: what makes documents relevant, and a ranker trained on it.


rule policy:
    input:
        unpack(lambda wildcards: rankings(wildcards.paper, wildcards.dataset)),
    output:
        ensure(
            f"{RESULTS}/policies/{{paper}}/{{dataset}}/{{relevance}}-{{ranker}}/{{seed}}.parquet",
            non_empty=True,
        ),
    log:
        f"{RESULTS}/logs/policies/{{paper}}/{{dataset}}/{{relevance}}-{{ranker}}/{{seed}}.log",
    # Before any fit, so that the longest of them can be first.
    priority: 1
    conda:
        TRAINING
    params:
        code=code("scripts/train_policy.py"),
        relevance=lambda wildcards: wildcards.relevance,
        ranker=lambda wildcards: wildcards.ranker,
        settings=lambda wildcards: experiment(wildcards).rankers.get(wildcards.ranker),
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/train_policy.py"
