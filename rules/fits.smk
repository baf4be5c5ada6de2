# Fits: one job per setting and seed, with all its conditions as lanes; and studies.


def fit_inputs(wildcards):
    paper = experiment(wildcards)
    log = paper.settings[wildcards.setting]["log"]
    return {
        **rankings(wildcards.paper, paper.logs[log]["dataset"]),
        "policy": log_policy(wildcards.paper, log, wildcards.seed),
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
        setting="|".join(name for paper in EXPERIMENTS.values() for name in paper.settings)
        or "(?!)",
    params:
        code=code("scripts/fit_towers.py"),
        paper=lambda wildcards: wildcards.paper,
        name=lambda wildcards: wildcards.setting,
        setting=setting,
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/fit_towers.py"


def study(wildcards):
    return experiment(wildcards).studies[wildcards.study]


def study_module(wildcards):
    return study(wildcards).get("module", wildcards.study)


def study_inputs(wildcards):
    """What a study reads: nothing, a click log, or rankings and who ranked them."""
    paper, dataset = wildcards.paper, study(wildcards).get("dataset")
    if dataset is None:
        return {}
    if LOG in source(dataset).splits:
        return {LOG: f"{RESULTS}/raw/{dataset}/{LOG}.parquet"}
    files = rankings(paper, dataset)
    if ranker := study(wildcards).get("ranker"):
        # One for all seeds, the first's: a study's seeds differ in what it draws itself.
        seed = experiment(wildcards).seeds[0]
        files["policy"] = policy_file(paper, dataset, "annotated", ranker, seed)
    return files


rule study:
    input:
        unpack(study_inputs),
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
            "scripts/run_study.py",
            f"papers/{wildcards.paper}/studies/{study_module(wildcards)}.py",
        ),
        paper=lambda wildcards: wildcards.paper,
        name=lambda wildcards: wildcards.study,
        module=study_module,
        parameters=lambda wildcards: {
            name: value
            for name, value in study(wildcards).items()
            if name not in ("module", "dataset", "ranker", "seeds")
        },
        seed=lambda wildcards: int(wildcards.seed),
    script:
        "../scripts/run_study.py"
