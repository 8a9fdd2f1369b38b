"""Campaigns of hostile tries: `disasters` and Hypothesis's properties of tests/robustness."""
