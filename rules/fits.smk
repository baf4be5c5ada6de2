# Fits: one job per setting and seed, with all its conditions as lanes; and studies.


def fit_inputs(wildcards):
    paper = experiment(wildcards)
    log = paper.settings[wildcards.setting]["log"]
    return {
        **rankings(paper.dataset),
        "policy": policy_file(wildcards.paper, log, wildcards.seed),
        "clicks": clicks_file(wildcards.paper, log, wildcards.seed),
    }


def setting(wildcards):
    paper = experiment(wildcards)
    setting = paper.settings[wildcards.setting]
    log = paper.logs[setting["log"]]
    return {
        **setting,
        "temperatures": log["temperatures"],
        "queries": log.get("queries"),
        "training": paper.training[setting["training"]],
        "positions": paper.positions,
    }


rule fit:
    input:
        unpack(fit_inputs),
    output:
        ensure(f"{RESULTS}/fits/{{paper}}/{{setting}}/{{seed}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/fits/{{paper}}/{{setting}}/{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/fits/{{paper}}/{{setting}}/{{seed}}.tsv"
    wildcard_constraints:
        setting="|".join(name for paper in EXPERIMENTS.values() for name in paper.settings),
    resources:
        gpu=1,
    params:
        code=code("scripts/fit_towers.py"),
        paper=lambda wildcards: wildcards.paper,
        name=lambda wildcards: wildcards.setting,
        setting=setting,
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/fit_towers.py"


rule study:
    input:
        unpack(lambda wildcards: rankings(experiment(wildcards).dataset)),
    output:
        ensure(f"{RESULTS}/fits/{{paper}}/{{study}}/{{seed}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/fits/{{paper}}/{{study}}/{{seed}}.log",
    benchmark:
        f"{RESULTS}/benchmarks/fits/{{paper}}/{{study}}/{{seed}}.tsv"
    wildcard_constraints:
        study="|".join(name for paper in EXPERIMENTS.values() for name in paper.studies) or "(?!)",
    params:
        code=lambda wildcards: code(
            "scripts/run_study.py", f"papers/{wildcards.paper}/studies/{wildcards.study}.py"
        ),
        paper=lambda wildcards: wildcards.paper,
        name=lambda wildcards: wildcards.study,
        parameters=lambda wildcards: experiment(wildcards).studies[wildcards.study],
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/run_study.py"
