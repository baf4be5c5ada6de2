"""How often an answer is right, on simulated data whose truth is known."""
