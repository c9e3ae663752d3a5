"""Judgements over whole runs: compared, followed over time, fitted. Composes analysis with run directories."""
