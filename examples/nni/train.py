"""A training script for NNI, as it was: gradient descent with momentum on a narrow valley."""

from __future__ import annotations

import argparse
import os

import nni
from nni.utils import merge_parameter

parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.01)
parser.add_argument("--momentum", type=float, default=0.0)
parser.add_argument("--steps", type=int, default=20)
arguments = merge_parameter(parser.parse_args(), nni.get_next_parameter())

x, y = 2.0, 1.0
speed_x, speed_y = 0.0, 0.0
for _ in range(arguments.steps):
    speed_x = arguments.momentum * speed_x - arguments.lr * x
    speed_y = arguments.momentum * speed_y - arguments.lr * 10 * y
    x, y = x + speed_x, y + speed_y
    loss = min(x * x / 2 + 5 * y * y, 1e9)
    nni.report_intermediate_result(loss)

with open(os.path.join(os.environ.get("NNI_OUTPUT_DIR", "."), "point.txt"), "w") as file:
    file.write(f"{x} {y}\n")
nni.report_final_result(loss)
