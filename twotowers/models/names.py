"""The short names of the thesis's ten click models, in the order of its appendix."""

MODELS = {
    "gctr": "global_rate",
    "rctr": "rank_rate",
    "dctr": "document_rate",
    "pbm": "position_based",
    "cm": "cascade",
    "ubm": "user_browsing",
    "dcm": "dependent_click",
    "ccm": "click_chain",
    "dbn": "dynamic_bayesian",
    "sdbn": "simplified_bayesian",
}
"""Short name -> name of the model's file."""
