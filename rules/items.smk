# Items: every table and figure, drawn from the fits it needs; the verdicts on claims; and which fits
# have learnt nothing.


rule figure:
    input:
        PLAN.inputs("figure"),
    output:
        pdf=report(PLAN.file("item", ending="pdf"), **PLAN.shelf("pdf")),
        svg=report(PLAN.file("item", ending="svg"), **PLAN.shelf("svg")),
        csv=report(PLAN.file("item", ending="csv"), **PLAN.shelf("csv")),
    log:
        PLAN.record("item"),
    wildcard_constraints:
        item=PLAN.constraint("figure"),
    priority: PLAN.priority("figure")
    conda:
        PLAN.environment("figure")
    params:
        **PLAN.params("figure"),
    message:
        "Draw {wildcards.item} of {wildcards.paper}"
    script:
        "../scripts/draw_item.py"


rule table:
    input:
        PLAN.inputs("table"),
    output:
        tex=report(PLAN.file("item", ending="tex"), **PLAN.shelf("tex")),
        csv=report(PLAN.file("item", ending="csv"), **PLAN.shelf("csv")),
    log:
        PLAN.record("item"),
    wildcard_constraints:
        item=PLAN.constraint("table"),
    priority: PLAN.priority("table")
    conda:
        PLAN.environment("table")
    params:
        **PLAN.params("table"),
    message:
        "Write {wildcards.item} of {wildcards.paper}"
    script:
        "../scripts/draw_item.py"


rule claims:
    input:
        PLAN.inputs("claims"),
    output:
        claims=PLAN.file("claims"),
        gates=PLAN.file("gates"),
        findings=PLAN.file("findings"),
    log:
        PLAN.record("claims"),
    priority: PLAN.priority("claims")
    conda:
        PLAN.environment("claims")
    params:
        **PLAN.params("claims"),
    message:
        "Judge the claims of {wildcards.paper}"
    script:
        "../scripts/judge_claims.py"
