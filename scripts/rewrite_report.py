"""Write docs/results/report.html and the sentences of results.json again, from the numbers in results.json.

    python scripts/rewrite_report.py

Run it after a change of sentences, tables or style; nothing is trained. Figures are not drawn again.
"""

import json
from pathlib import Path

from neural_brane.experiments.reproduce.results import read_json
from neural_brane.experiments.reproduce.run import write_words

FOLDER = Path(__file__).parent.parent / "docs" / "results"


def main(folder: Path = FOLDER, target: Path = FOLDER) -> None:
    """Read the numbers and figures of `folder`, and write report.html and results.json into `target`."""
    path = folder / "results.json"
    figures = {figure.stem: figure for figure in (folder / "figures").glob("*.svg")}
    trainings = json.loads(path.read_text(encoding="utf-8"))["trainings"]
    write_words(read_json(path), figures, target, trainings=trainings)


if __name__ == "__main__":
    main()
