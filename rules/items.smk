# Items: every table and figure, drawn from the fits it needs; and the verdicts on claims.


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


rule figure:
    input:
        lambda wildcards: fit_files(wildcards.paper, item(wildcards)["needs"]),
    output:
        pdf=shown(f"{FIGURES}/{{paper}}/{{item}}.pdf"),
        svg=shown(f"{FIGURES}/{{paper}}/{{item}}.svg"),
        csv=shown(f"{FIGURES}/{{paper}}/{{item}}.csv"),
    log:
        f"{RESULTS}/logs/items/{{paper}}/{{item}}.log",
    wildcard_constraints:
        item=items("figure"),
    conda:
        "../envs/plots.yaml"
    params:
        code=lambda wildcards: item_code(wildcards.paper, wildcards.item),
        paper=lambda wildcards: wildcards.paper,
        item=lambda wildcards: wildcards.item,
        note=lambda wildcards: source_note(wildcards.paper, wildcards.item),
        caption=lambda wildcards: item(wildcards)["caption"],
    script:
        "../scripts/draw_item.py"


rule table:
    input:
        lambda wildcards: fit_files(wildcards.paper, item(wildcards)["needs"]),
    output:
        tex=shown(f"{FIGURES}/{{paper}}/{{item}}.tex"),
        csv=shown(f"{FIGURES}/{{paper}}/{{item}}.csv"),
    log:
        f"{RESULTS}/logs/items/{{paper}}/{{item}}.log",
    wildcard_constraints:
        item=items("table"),
    conda:
        "../envs/plots.yaml"
    params:
        code=lambda wildcards: item_code(wildcards.paper, wildcards.item),
        paper=lambda wildcards: wildcards.paper,
        item=lambda wildcards: wildcards.item,
        note=lambda wildcards: source_note(wildcards.paper, wildcards.item),
        caption=lambda wildcards: item(wildcards)["caption"],
    script:
        "../scripts/draw_item.py"


rule claims:
    input:
        lambda wildcards: fit_files(wildcards.paper),
    output:
        f"{RESULTS}/claims/{{paper}}.csv",
    log:
        f"{RESULTS}/logs/claims/{{paper}}.log",
    conda:
        "../envs/plots.yaml"
    params:
        code=lambda wildcards: code(
            "scripts/judge_claims.py",
            f"papers/{wildcards.paper}/claims.py",
            f"papers/{wildcards.paper}/published.py",
            *sorted(Path(workflow.basedir).glob(f"papers/{wildcards.paper}/published/*.csv")),
        ),
        paper=lambda wildcards: wildcards.paper,
    script:
        "../scripts/judge_claims.py"
