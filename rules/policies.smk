# Logging policies: the relevance of documents, and a ranker trained on it.


rule policy:
    input:
        unpack(lambda w: PLAN.rankings(w.paper, w.dataset)),
    output:
        ensure(PLAN.file("policy"), non_empty=True),
    log:
        PLAN.log("policy"),
    priority: lambda w: ORDER.of_inputs(w.paper)
    conda:
        PLAN.environment("policy")
    params:
        code=code("scripts/train_policy.py"),
        relevance=lambda w: w.relevance,
        ranker=lambda w: w.ranker,
        settings=lambda w: PLAN.experiments[w.paper].rankers.get(w.ranker),
        places=lambda w: PLAN.padded_places(w.paper, w.dataset),
        seed=lambda w: int(w.seed),
    message:
        "Rank {wildcards.dataset} for {wildcards.paper}: {wildcards.ranker} ranker, "
        "{wildcards.relevance} relevance, seed {wildcards.seed}"
    script:
        "../scripts/train_policy.py"
