"""Makes a run of each kind and pictures of the first screens of their pages: docs/images/pages-*.png."""

from __future__ import annotations

import argparse
import html
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.support.page import CHROMIUM  # noqa: E402

IMAGES = ROOT / "docs" / "images"
PGDYNO = Path(sys.executable).parent / "pgdyno"
LANGUAGES = ("en", "zh")
#: Width and height of a first screen, and how much smaller it is shown.
SCREENS = {1280: (800, 0.45), 390: (844, 0.6)}
_SHORT = "--embedded --quiet --duration 2 --warmup 0.5"
#: Shell commands that make each kind of page; $P is the page, $L its language.
KINDS = {
    "run": f"pgdyno run quick {_SHORT} --clients 2,8,32 --repetitions 2 --runs run",
    "vary": "pgdyno run quick --vary synchronous_commit=on,off --quiet --runs vary",
    "matrix": "pgdyno run cloud-matrix --shrink 4000 --repetitions 1 --quiet --runs matrix",
    "capacity": "pgdyno capacity --slo 'p99<20ms' --embedded --scale 5 --quiet --runs capacity",
    "tpcc": "pgdyno run tpcc-compare --scale 4 --clients 8 --duration 4 --warmup 1 --repetitions 2 --quiet --runs tpcc",
    "drill": "pgdyno cluster create r1 --standbys 2 --sync 'ANY 1 (*)' && "
    "pgdyno drill r1 --fault kill-primary,cut-primary --rounds 2 --quiet --runs drill; pgdyno cluster destroy r1",
    "comparison": f"for n in 1 2 3; do pgdyno run quick {_SHORT} --clients 8 --hot-set 1 --repetitions 1 "
    f"--restarts 2 --runs a; pgdyno run quick {_SHORT} --clients 8 --hot-set 1 --repetitions 1 "
    "--restarts 2 --set synchronous_commit=off --runs b; done",
    "history": "true",
    "load": "pgdyno cluster create c1",
}
PAGES = {
    "comparison": "pgdyno --lang $L compare a/* $(for r in b/*; do echo --side-b $r; done) --page $P",
    "history": "pgdyno --lang $L history a --page $P",
    "load": "pgdyno --lang $L load pk --rows $((4000000 + RANDOM)) --replace --data c1 --page $P",
}


def main() -> None:
    """Make the runs, their pages in each language, and the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", default=list(KINDS), choices=list(KINDS))
    args = parser.parse_args()
    if not subprocess.run(["fc-list", ":lang=zh"], capture_output=True, check=True).stdout:
        sys.exit("no font has Chinese characters: apt-get install fonts-wqy-microhei")
    with tempfile.TemporaryDirectory(prefix="pgdyno-pictures-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        sizes = {}
        for kind in args.only:
            sys.stderr.write(f"{kind} ...\n")
            _shell(KINDS[kind], folder)
            for lang in LANGUAGES:
                sizes[kind, lang] = _page(kind, lang, folder).stat().st_size
        for lang in LANGUAGES:
            for width in SCREENS:
                for scheme in ("light", "dark"):
                    _sheet(args.only, lang, width, scheme, folder)
        for kind in args.only:
            en, zh = (sizes[kind, lang] / 1000 for lang in LANGUAGES)
            sys.stdout.write(f"| {kind} | {en:.0f} kB | {zh:.0f} kB |\n")


def _shell(command: str, folder: Path, **more: str) -> None:
    env = {**os.environ, "PATH": f"{PGDYNO.parent}:{os.environ['PATH']}", "COLUMNS": "80", **more}
    subprocess.run(["bash", "-c", command], cwd=folder, env=env, stdout=subprocess.DEVNULL, check=False)


def _page(kind: str, lang: str, folder: Path) -> Path:
    page = folder / f"{kind}-{lang}.html"
    if kind in PAGES:
        _shell(PAGES[kind], folder, P=str(page), L=lang)
        return page
    (run,) = (folder / kind).iterdir()
    _shell(f"pgdyno --lang {lang} report {run}", folder)
    found = [run / f"report.{lang}.html", run / "report.html"]
    shutil.copy(next(p for p in found if p.exists()), page)
    return page


def _sheet(kinds: list[str], lang: str, width: int, scheme: str, folder: Path) -> None:
    """Write a picture of the first screens of all kinds side by side."""
    height, scale = SCREENS[width]
    columns = 3 if width > 1000 else 5
    cell = f"width:{width * scale:.0f}px;height:{height * scale:.0f}px;overflow:hidden;border:1px solid #888"
    frame = f"width:{width}px;height:{height}px;border:0;transform:scale({scale});transform-origin:0 0"
    cells = "".join(
        f'<figure style="margin:0"><figcaption>{html.escape(kind)}</figcaption>'
        f'<div style="{cell}"><iframe style="{frame}" src="{kind}-{lang}.html"></iframe></div></figure>'
        for kind in kinds
    )
    sheet = folder / "sheet.html"
    style = (
        f"display:grid;grid-template-columns:repeat({columns},max-content);gap:12px;font:14px sans-serif;margin:12px"
    )
    sheet.write_text(f'<!doctype html><meta charset="utf-8"><body style="{style}">{cells}', encoding="utf-8")
    rows = -(-len(kinds) // columns)
    size = f"{int(columns * (width * scale + 14) + 24)},{int(rows * (height * scale + 34) + 24)}"
    assert CHROMIUM is not None, "apt-get install chromium"
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        argv = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", f"--window-size={size}",
                f"--user-data-dir={profile}", "--virtual-time-budget=8000", "--allow-file-access-from-files",
                f"--screenshot={IMAGES / f'pages-{lang}-{width}-{scheme}.png'}", f"file://{sheet}"]  # fmt: skip
        if scheme == "dark":
            argv.insert(1, "--blink-settings=preferredColorScheme=0")
        subprocess.run(argv, stderr=subprocess.DEVNULL, check=True)


if __name__ == "__main__":
    main()
