# Logging policies: the relevance of documents, and a ranker trained on it.


rule policy:
    input:
        unpack(PLAN.get("policy", "inputs")),
    output:
        ensure(PLAN.file("policy"), non_empty=True),
    log:
        PLAN.record("policy"),
    priority: PLAN.get("policy", "priority")
    conda:
        f"../envs/jax-{config['device']}.yaml"
    resources:
        gpu=PLAN.get("policy", "gpu"),
    params:
        **PLAN.params("policy"),
    message:
        "Rank {wildcards.dataset} for {wildcards.paper}: {wildcards.ranker} ranker, "
        "{wildcards.relevance} relevance, seed {wildcards.seed}"
    script:
        "../scripts/train_policy.py"
