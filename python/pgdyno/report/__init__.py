"""One view model, three renderers: terminal, Markdown, HTML."""
