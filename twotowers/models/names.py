"""The ten click models of the thesis, in the order of its appendix, by their short names."""

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
"""From each model's short name to that of its file."""
