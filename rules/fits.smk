# Fits: one job per setting and seed, with all its conditions as lanes; and studies.


rule fit:
    input:
        unpack(fit_inputs),
    output:
        ensure(f"{RESULTS}/fits/{{paper}}/{{setting}}/{{seed}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/fits/{{paper}}/{{setting}}/{{seed}}.log",
    wildcard_constraints:
        setting="|".join(name for paper in EXPERIMENTS.values() for name in paper.settings)
        or "(?!)",
    priority: urgency
    conda:
        TRAINING
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
        unpack(study_inputs),
    output:
        ensure(f"{RESULTS}/fits/{{paper}}/{{study}}/{{seed}}.parquet", non_empty=True),
    log:
        f"{RESULTS}/logs/fits/{{paper}}/{{study}}/{{seed}}.log",
    wildcard_constraints:
        study="|".join(name for paper in EXPERIMENTS.values() for name in paper.studies) or "(?!)",
    conda:
        "../envs/trees.yaml"
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
