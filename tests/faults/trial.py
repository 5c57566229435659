"""What the trials of the campaign do: report a sum step by step, and write down what was acknowledged.

As a script it is a command trial, `train` is the function trial. Each result holds a token of its run, so that no two
are equal. Once `report` has returned, a line about the result goes into the witness file: it must no longer be lost.
"""

import json
import os
import time

import pitchpipe

STEPS = int(os.environ.get("PPFAULTS_STEPS", "10"))


def train(parameters: dict) -> None:  # type: ignore[type-arg]
    """Report `STEPS` sums and a final result; a checkpoint after every second one."""
    x = parameters["x"]
    token = os.urandom(6).hex()
    witness = os.path.join(os.environ["PPFAULTS_WITNESS"], str(pitchpipe.get_sequence_id()))
    saved = pitchpipe.get_checkpoint()
    state = {"step": 0, "sum": 0.0} if saved is None else saved.to_dict()

    def note(*what: object) -> None:
        descriptor = os.open(witness, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        os.write(descriptor, json.dumps([token, *what]).encode() + b"\n")
        os.close(descriptor)

    note("begin", state["step"], time.time())
    while state["step"] < STEPS:
        state["sum"] += x + state["step"]
        pitchpipe.report_intermediate_result({"default": state["sum"], "token": token})
        note("report", state["step"], state["sum"])
        state["step"] += 1
        if state["step"] % 2 == 0:
            pitchpipe.save_checkpoint(state)
        time.sleep(0.01 + 0.03 * x)
    pitchpipe.report_final_result({"default": x, "token": token})
    note("final", STEPS, x)


if __name__ == "__main__":
    train(pitchpipe.get_next_parameter())
