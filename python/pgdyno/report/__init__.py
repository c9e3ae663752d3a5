"""Reports: one view, rendered for terminal, Markdown and HTML."""
