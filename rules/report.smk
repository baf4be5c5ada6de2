# The page that shows every item beside the published numbers, and every claim's verdict; and the
# machine-readable record of how all of it was made.
import os


def page_files(wildcards=None):
    return [
        path
        for key, paper in EXPERIMENTS.items()
        for item in paper.items
        for path in item_files(key, item)
    ]


def timings(paper, needs=None):
    """Seconds and memory of the jobs behind the given settings and studies."""
    return [
        f"{RESULTS}/benchmarks/{os.path.relpath(path, RESULTS)}".replace(".parquet", ".tsv")
        for path in fit_files(paper, needs)
    ]


def origins(datasets):
    """Whether each data set is a stand-in."""
    return {name: is_standin(name) for name in datasets}


def page_papers():
    """All that the page says of each paper beyond its results."""
    return [
        {
            "key": key,
            "title": paper.title,
            "citation": paper.citation,
            "readme": os.path.relpath(f"papers/{key}/README.md", FIGURES),
            "datasets": origins(paper.datasets),
            "seeds": paper.seeds,
            "claims": f"{RESULTS}/claims/{key}.csv",
            "timings": timings(key),
            "items": {
                name: {
                    **{word: item[word] for word in ("title", "caption", "expected", "kind")},
                    "highlight": item.get("highlight"),
                    "files": item_files(key, name),
                    "timings": timings(key, item["needs"]),
                    "datasets": origins(used_datasets(key, item["needs"])),
                    "seeds": used_seeds(key, item["needs"]),
                }
                for name, item in paper.items.items()
            },
        }
        for key, paper in EXPERIMENTS.items()
    ]


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
    conda:
        "../envs/plots.yaml"
    params:
        code=code("scripts/build_page.py", "twotowers/templates/page.html.j2"),
        papers=page_papers(),
        scale=config["scale"],
        version=code_version(Path(workflow.basedir)),
    script:
        "../scripts/build_page.py"


def crate_data():
    """What the papers read: files by their manifest, stand-ins by how they are generated."""
    names = dict.fromkeys(
        name
        for key, paper in EXPERIMENTS.items()
        for name in used_datasets(key, [*paper.settings, *paper.studies])
    )
    return [
        (
            {"name": name, "generated": standin(name)}
            if is_standin(name)
            else {"name": name, "manifest": f"{RESULTS}/raw/{name}/manifest.json"}
        )
        for name in names
    ]


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
