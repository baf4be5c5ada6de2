# Items: every table and figure, drawn from the fits it needs; the verdicts on claims; and which fits
# have learnt nothing.


rule figure:
    input:
        PLAN.get("figure", "inputs"),
    output:
        pdf=PLAN.file("item", ending="pdf"),
        svg=PLAN.file("item", ending="svg"),
        csv=PLAN.file("item", ending="csv"),
    log:
        PLAN.record("item"),
    wildcard_constraints:
        item=PLAN.constraint("figure", "item"),
    priority: PLAN.get("figure", "priority")
    conda:
        "../envs/plots.yaml"
    params:
        **PLAN.params("figure"),
    message:
        "Draw {wildcards.item} of {wildcards.paper}"
    script:
        "../scripts/draw_item.py"


rule table:
    input:
        PLAN.get("table", "inputs"),
    output:
        tex=PLAN.file("item", ending="tex"),
        csv=PLAN.file("item", ending="csv"),
    log:
        PLAN.record("item"),
    wildcard_constraints:
        item=PLAN.constraint("table", "item"),
    priority: PLAN.get("table", "priority")
    conda:
        "../envs/plots.yaml"
    params:
        **PLAN.params("table"),
    message:
        "Write {wildcards.item} of {wildcards.paper}"
    script:
        "../scripts/draw_item.py"


rule claims:
    input:
        PLAN.get("claims", "inputs"),
    output:
        claims=PLAN.file("claims"),
        gates=PLAN.file("gates"),
        findings=PLAN.file("findings"),
    log:
        PLAN.record("claims"),
    priority: PLAN.get("claims", "priority")
    conda:
        "../envs/plots.yaml"
    params:
        **PLAN.params("claims"),
    message:
        "Judge the claims of {wildcards.paper}"
    script:
        "../scripts/judge_claims.py"
