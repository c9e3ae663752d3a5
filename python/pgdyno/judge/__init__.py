"""Judgements over runs: groups, comparisons, history, scaling."""
