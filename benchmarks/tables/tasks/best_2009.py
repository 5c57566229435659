"""Prints the share of targets that the best algorithm of 2009 is expected to reach, for `reference.py`."""

from __future__ import annotations

import json
import os
import sys
import tempfile


def main() -> None:
    """Reply to the request in the first argument."""
    request = json.loads(sys.argv[1])
    from cocopp import bestalg, pproc, testbedsettings

    testbedsettings.load_current_testbed("bbob", pproc.TargetValues)
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)  # cocopp writes where it is started
        best = bestalg.load_reference_algorithm("refalgs/best2009-bbob.tar.gz")
    shares = []
    for function, dimension in request["functions"]:
        needed = best[dimension, function].detERT(request["targets"])
        shares.append(sum(one <= request["budget"] * dimension for one in needed) / len(needed))
    print(json.dumps(100 * sum(shares) / len(shares)))


main()
