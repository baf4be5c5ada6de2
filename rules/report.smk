# Pages that show every item beside the published numbers, and every claim's verdict.


# As soon as a paper is done. The job also writes the overview of all papers that are done;
# `overview` writes it last, and is what the rest depends on.
rule page:
    input:
        PLAN.get("page", "inputs"),
    output:
        page=PLAN.file("page"),
        summary=PLAN.file("summary"),
    log:
        PLAN.record("page"),
    priority: PLAN.get("page", "priority")
    conda:
        "../envs/plots.yaml"
    params:
        **PLAN.params("page"),
        version=VERSION,
    message:
        "Build the page of {wildcards.paper}"
    script:
        "../scripts/build_page.py"


rule overview:
    input:
        PLAN.get("overview", "inputs"),
    output:
        # Not deleted before it is replaced: somebody may be looking at it.
        overview=update(PLAN.file("overview")),
        claims=PLAN.file("verdicts"),
    log:
        PLAN.record("overview"),
    conda:
        "../envs/plots.yaml"
    params:
        **PLAN.params("overview"),
        version=VERSION,
    message:
        "Build the overview"
    script:
        "../scripts/build_overview.py"
