# The page that shows every item beside the published numbers, and every claim's verdict.
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
    params:
        code=code("scripts/build_page.py", "twotowers/templates/page.html.j2"),
        papers=page_papers(),
        scale=config["scale"],
        version=code_version(Path(workflow.basedir)),
    script:
        "../scripts/build_page.py"
