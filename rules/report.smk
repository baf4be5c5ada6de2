# The page that shows every item beside the published numbers, and every claim's verdict.


rule page:
    input:
        page_files(),
        [f"{RESULTS}/claims/{key}.csv" for key in EXPERIMENTS],
        [path for key in EXPERIMENTS for path in timings(key)],
    output:
        page=report(f"{FIGURES}/index.html", category="overview", caption="page.rst"),
        claims=report(f"{FIGURES}/claims.csv", category="overview", caption="claims.rst"),
    log:
        f"{RESULTS}/logs/page.log",
    params:
        code=code("scripts/build_page.py", "twotowers/templates/page.html.j2"),
        papers=page_papers(),
        scale=config["scale"],
        version=code_version(Path(workflow.basedir)),
    script:
        "../scripts/build_page.py"
