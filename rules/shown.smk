# What items and the page show, and where it came from; no rules.
import os


def item_code(paper, item):
    """Digest of what draws one item: its module, what that imports, and the published numbers."""
    published = sorted(Path(workflow.basedir).glob(f"papers/{paper}/published/*.csv"))
    return code("scripts/draw_item.py", f"papers/{paper}/items/{item}.py", *published)


def items(kind):
    """Regular expression of the items of one kind, over all papers."""
    return (
        "|".join(
            {
                name
                for paper in EXPERIMENTS.values()
                for name, item in paper.items.items()
                if item["kind"] == kind
            }
        )
        or "(?!)"
    )


def source_note(paper, item):
    """What a reader must know of where an item's numbers came from."""
    needs = EXPERIMENTS[paper].items[item]["needs"]
    data = [
        f"{'generated stand-in for' if is_standin(name) else 'real'} {name}"
        for name in used_datasets(paper, needs)
    ]
    seeds = seed_range(used_seeds(paper, needs))
    return f"Data: {', '.join(data) or 'simulated'}. Scale: {config['scale']}. Seeds: {seeds}."


def item(wildcards):
    return experiment(wildcards).items[wildcards.item]


def item_files(paper, item):
    """Every file of one item."""
    endings = {"figure": ["pdf", "svg", "csv"], "table": ["tex", "csv"]}
    kind = EXPERIMENTS[paper].items[item]["kind"]
    return [f"{FIGURES}/{paper}/{item}.{ending}" for ending in endings[kind]]


def shown(path):
    """An output that Snakemake's own report shows, under its paper."""
    return report(
        path,
        category="{paper}",
        labels={"item": "{item}", "format": path.rsplit(".", 1)[1]},
        caption="caption.rst",
    )


def page_files(wildcards=None):
    return [
        path
        for key, paper in EXPERIMENTS.items()
        for item in paper.items
        for path in item_files(key, item)
    ]


def fit_logs(paper, needs=None):
    """The logs of the jobs behind the given settings and studies, which say how long they took."""
    return [
        f"{RESULTS}/logs/{os.path.relpath(path, RESULTS)}".replace(".parquet", ".log")
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
            "logs": fit_logs(key),
            "items": {
                name: {
                    **{word: item[word] for word in ("title", "caption", "expected", "kind")},
                    "highlight": item.get("highlight"),
                    "files": item_files(key, name),
                    "logs": fit_logs(key, item["needs"]),
                    "datasets": origins(used_datasets(key, item["needs"])),
                    "seeds": used_seeds(key, item["needs"]),
                }
                for name, item in paper.items.items()
            },
        }
        for key, paper in EXPERIMENTS.items()
    ]


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
