# The page that shows every item beside the published numbers, and every claim's verdict; and the
# machine-readable record of how all of it was made.


rule page:
    input:
        PLAN.shown(),
        PLAN.verdicts(),
    output:
        page=report(PLAN.file("page"), category="overview", caption="page.rst"),
        claims=report(PLAN.file("verdicts"), category="overview", caption="claims.rst"),
    log:
        PLAN.log("page"),
    conda:
        PLAN.environment("page")
    params:
        code=code("scripts/build_page.py", "twotowers/report/templates/page.html.j2"),
        papers=page_papers(PLAN),
        scale=config["scale"],
        version=code_version(PLAN.root),
    message:
        "Build the page"
    script:
        "../scripts/build_page.py"


# It holds times, so nothing depends on it but `all`.
rule crate:
    input:
        PLAN.shown(),
        rules.page.output,
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
        files=[*rules.page.output, *PLAN.shown()],
        snakefile=f"{workflow.basedir}/Snakefile",
        lock=f"{workflow.basedir}/requirements.txt",
        data=crate_data(PLAN),
        config=config,
        version=code_version(PLAN.root),
        logs=f"{PLAN.results}/logs",
    message:
        "Record how all of it was made"
    script:
        "../scripts/build_crate.py"
