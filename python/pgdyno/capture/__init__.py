"""Workloads from production: weighted scripts from what a server, or its log, says it has carried out."""
