"""Write docs/results/report.html, and the sentences of results.json beside it, again from the numbers kept there.

    python scripts/rewrite_report.py

For a change of words, tables or looks that needs no new training. Figures stay as they are.
"""

import json
from pathlib import Path

from neural_brane.experiments.reproduce.results import read_json
from neural_brane.experiments.reproduce.run import write_words

FOLDER = Path(__file__).parent.parent / "docs" / "results"


def main(folder: Path = FOLDER, target: Path = FOLDER) -> None:
    """Read the numbers and figures of a folder of results, and write the words into another, or the same."""
    path = folder / "results.json"
    figures = {figure.stem: figure for figure in (folder / "figures").glob("*.svg")}
    trainings = json.loads(path.read_text(encoding="utf-8"))["trainings"]
    write_words(read_json(path), figures, target, trainings=trainings)


if __name__ == "__main__":
    main()
