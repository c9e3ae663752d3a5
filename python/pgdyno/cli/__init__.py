"""Command line: parse, call, print; the only package that exits."""
