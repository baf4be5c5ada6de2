# Items: every table and figure, drawn from the fits it needs; and the verdicts on claims.


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
