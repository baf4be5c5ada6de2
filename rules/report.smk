# The page that shows every item beside the published numbers, and every claim's verdict; and the
# machine-readable record of how all of it was made.


rule page:
    input:
        page_files(),
        [f"{RESULTS}/claims/{key}.csv" for key in EXPERIMENTS],
    output:
        page=report(f"{FIGURES}/index.html", category="overview", caption="page.rst"),
        claims=report(f"{FIGURES}/claims.csv", category="overview", caption="claims.rst"),
    log:
        f"{RESULTS}/logs/page.log",
    conda:
        "../envs/plots.yaml"
    params:
        code=code("scripts/build_page.py", "twotowers/report/templates/page.html.j2"),
        papers=page_papers(),
        scale=config["scale"],
        version=code_version(Path(workflow.basedir)),
    script:
        "../scripts/build_page.py"


# It holds times, so nothing depends on it but `all`.
rule crate:
    input:
        page_files(),
        rules.page.output,
        [data["manifest"] for data in crate_data() if "manifest" in data],
    output:
        crate=f"{FIGURES}/ro-crate-metadata.json",
        workflow=f"{FIGURES}/Snakefile",
    log:
        f"{RESULTS}/logs/crate.log",
    conda:
        "../envs/plots.yaml"
    params:
        code=code("scripts/build_crate.py"),
        files=[f"{FIGURES}/index.html", f"{FIGURES}/claims.csv", *page_files()],
        snakefile=f"{workflow.basedir}/Snakefile",
        lock=f"{workflow.basedir}/requirements.txt",
        data=crate_data(),
        config=config,
        version=code_version(Path(workflow.basedir)),
        logs=f"{RESULTS}/logs",
    script:
        "../scripts/build_crate.py"
