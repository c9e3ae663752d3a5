"""The report as one HTML file that needs no network: styles, data and the chart library are inside."""

from __future__ import annotations

import json
from importlib import resources

import jinja2
import vl_convert

from pgdyno.report.view import View


def render(view: View) -> str:
    """The page."""
    source = (resources.files("pgdyno.report") / "templates" / "report.html.j2").read_text(encoding="utf-8")
    env = jinja2.Environment(autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    specs = {c.name: c.spec for c in view.charts}
    return env.from_string(source).render(
        view=view,
        # "</" must not end the script element early.
        specs=json.dumps(specs, separators=(",", ":")).replace("</", "<\\/"),
        library=_library() if specs else "",
    )


def _library() -> str:
    # The type stub claims that a snippet is required; without one, the bundle puts its functions into `window`.
    bundle: str = vl_convert.javascript_bundle()  # type: ignore[call-arg]
    return bundle.replace("</script", "<\\/script")
