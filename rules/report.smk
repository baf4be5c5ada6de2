# Pages that show every item beside the published numbers, and every claim's verdict; and the
# machine-readable record of how all of it was made.


# As soon as a paper is done. The job also rewrites the overview, which `onstart` writes first;
# `overview` writes it last, and is what the rest depends on.
rule page:
    input:
        lambda w: PLAN.items_of(w.paper),
        PLAN.file("claims"),
    output:
        page=report(PLAN.file("page"), category="overview", caption="page.rst"),
        summary=PLAN.file("summary"),
    log:
        PLAN.log("page"),
    priority: lambda w: ORDER.of_page(w.paper)
    conda:
        PLAN.environment("page")
    params:
        code=code("scripts/build_page.py", *page_sources(PLAN)),
        paper=lambda w: page_paper(PLAN, w.paper),
        papers=outlines(PLAN),
        scale=config["scale"],
        version=VERSION,
    message:
        "Build the page of {wildcards.paper}"
    script:
        "../scripts/build_page.py"


rule overview:
    input:
        PLAN.of_papers("summary", "claims"),
    output:
        # Not deleted before it is replaced: somebody may be looking at it.
        overview=report(update(PLAN.file("overview")), category="overview", caption="overview.rst"),
        claims=report(PLAN.file("verdicts"), category="overview", caption="claims.rst"),
    log:
        PLAN.log("overview"),
    conda:
        PLAN.environment("overview")
    params:
        code=code("scripts/build_overview.py", *page_sources(PLAN)),
        papers=outlines(PLAN),
        claims=PLAN.of_papers("claims"),
        scale=config["scale"],
        version=VERSION,
    message:
        "Build the overview"
    script:
        "../scripts/build_overview.py"


# It holds times, so nothing depends on it but `all`.
rule crate:
    input:
        PLAN.shown(),
        PLAN.of_papers("page", "summary"),
        rules.overview.output,
        [data["manifest"] for data in crate_data(PLAN) if "manifest" in data],
    output:
        crate=PLAN.file("crate"),
        workflow=PLAN.file("workflow"),
    log:
        PLAN.log("crate"),
    conda:
        PLAN.environment("crate")
    params:
        code=code("scripts/build_crate.py"),
        files=[*rules.overview.output, *PLAN.of_papers("page", "summary"), *PLAN.shown()],
        snakefile=f"{workflow.basedir}/Snakefile",
        lock=f"{workflow.basedir}/requirements.txt",
        data=crate_data(PLAN),
        config=config,
        version=VERSION,
        logs=f"{PLAN.results}/logs",
    message:
        "Record how all of it was made"
    script:
        "../scripts/build_crate.py"
