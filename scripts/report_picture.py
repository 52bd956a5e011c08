"""Take a screenshot of the top of a report: docs/report.png from docs/results/report.html.

    python scripts/report_picture.py [REPORT] [PICTURE]

Needs playwright and Chromium (on the PATH).
"""

import shutil
import sys
from pathlib import Path

DOCS = Path(__file__).parent.parent / "docs"


def main(report: Path = DOCS / "results" / "report.html", picture: Path = DOCS / "report.png") -> None:
    """Open the report in a headless browser and write the screenshot."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if chromium is None:
        raise SystemExit("there is no Chromium on the PATH; install it, for example with 'apt-get install chromium'")
    with sync_playwright() as play:
        page = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"]).new_page(
            viewport={"width": 1440, "height": 1500}, device_scale_factor=0.6
        )
        page.goto(report.resolve().as_uri())
        page.screenshot(path=picture)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:3]))
