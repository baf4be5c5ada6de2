# Items: every table and figure, drawn from the fits it needs; and the verdicts on claims.


rule figure:
    input:
        lambda w: PLAN.item_inputs(w.paper, w.item),
    output:
        pdf=report(PLAN.file("item", ending="pdf"), **PLAN.shelf("pdf")),
        svg=report(PLAN.file("item", ending="svg"), **PLAN.shelf("svg")),
        csv=report(PLAN.file("item", ending="csv"), **PLAN.shelf("csv")),
    log:
        PLAN.log("item"),
    wildcard_constraints:
        item=PLAN.constraint("figure"),
    priority: lambda w: ORDER.of_page(w.paper)
    conda:
        PLAN.environment("figure")
    params:
        code=lambda w: code("scripts/draw_item.py", *PLAN.item_sources(w.paper, w.item)),
        paper=lambda w: w.paper,
        drawing=lambda w: PLAN.experiments[w.paper].items[w.item]["draw"],
        note=lambda w: source_note(PLAN, w.paper, w.item),
        caption=lambda w: PLAN.experiments[w.paper].items[w.item]["caption"],
    message:
        "Draw {wildcards.item} of {wildcards.paper}"
    script:
        "../scripts/draw_item.py"


rule table:
    input:
        lambda w: PLAN.item_inputs(w.paper, w.item),
    output:
        tex=report(PLAN.file("item", ending="tex"), **PLAN.shelf("tex")),
        csv=report(PLAN.file("item", ending="csv"), **PLAN.shelf("csv")),
    log:
        PLAN.log("item"),
    wildcard_constraints:
        item=PLAN.constraint("table"),
    priority: lambda w: ORDER.of_page(w.paper)
    conda:
        PLAN.environment("table")
    params:
        code=lambda w: code("scripts/draw_item.py", *PLAN.item_sources(w.paper, w.item)),
        paper=lambda w: w.paper,
        drawing=lambda w: PLAN.experiments[w.paper].items[w.item]["draw"],
        note=lambda w: source_note(PLAN, w.paper, w.item),
        caption=lambda w: PLAN.experiments[w.paper].items[w.item]["caption"],
    message:
        "Write {wildcards.item} of {wildcards.paper}"
    script:
        "../scripts/draw_item.py"


rule claims:
    input:
        lambda w: PLAN.results_of(w.paper),
    output:
        PLAN.file("claims"),
    log:
        PLAN.log("claims"),
    priority: lambda w: ORDER.of_page(w.paper)
    conda:
        PLAN.environment("claims")
    params:
        code=lambda w: code("scripts/judge_claims.py", *PLAN.claims_sources(w.paper)),
        paper=lambda w: w.paper,
        needs=lambda w: items_needs(PLAN, w.paper),
        data=lambda w: needs_data(PLAN, w.paper),
    message:
        "Judge the claims of {wildcards.paper}"
    script:
        "../scripts/judge_claims.py"
