# What fits and studies are made from; no rules.


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


def urgency(wildcards):
    """Long fits first, so that no core idles while the last one ends; a setting's first seed before
    the others, which then find its program compiled; and studies to fill the end.

    Between the priority of policies and click logs, 1, and that of studies, 0.
    """
    paper = experiment(wildcards)
    fit = setting(wildcards)
    lanes = len(fit["strengths"]) * len(fit["temperatures"]) * len(fit["weightings"])
    visits = lanes * fit["training"]["batch"] * fit["training"]["steps"]
    # A query costs a deep tower about six times as much as another.
    work = visits * (6 if fit["tower"] == "deep" else 1)
    later = paper.seeds.index(int(wildcards.seed)) + 1
    return 1 - later / (len(paper.seeds) + 1) + work / 10**9


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
