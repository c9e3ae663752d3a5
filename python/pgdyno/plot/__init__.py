"""Charts as SVG: what a chart shows (`model`), where it goes (`scales`), and how it is drawn (`svg`)."""
