"""Intermediate results of two trials at once: stored, then judged by the median stopping rule."""

import json
from pathlib import Path

from harness import answer, options
from ours import rows_of, run

from pitchpipe import report_intermediate_result

chosen = options()
STEPS = 500
judged_file = Path.cwd() / "judged.json"


def trial(parameters: dict) -> float:
    del parameters
    for _ in range(STEPS):
        report_intermediate_result(0.5)
    return 0.5


assessor = {
    "class_name": "counting.Counting",
    "code_directory": str(Path(__file__).parent),
    "class_args": {"path": str(judged_file)},
}
folder = run(trial, chosen.size // STEPS, assessor=assessor)
[(stored,)] = rows_of(folder, "SELECT count(*) FROM metrics WHERE kind = 'PERIODICAL'")
[(first,)] = rows_of(folder, "SELECT min(start_time) FROM trials")
judged = json.loads(judged_file.read_text(encoding="utf-8"))
if stored != judged["judged"]:
    raise SystemExit(f"{stored} results were stored and {judged['judged']} judged")
answer(results_per_second=stored / (judged["last"] - first))
