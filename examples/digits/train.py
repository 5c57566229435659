"""Trains a small neural network on handwritten digits and reports its accuracy after every epoch.

Run it alone (`python train.py`) and it trains with the default parameters and prints what it would report;
run by Pitchpipe it gets its parameters from the tuner.
"""

import warnings
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

import pitchpipe

EPOCHS = 60
DEFAULTS: dict[str, Any] = {
    "hidden_units": 32,
    "hidden_layers": 1,
    "activation": "relu",
    "learning_rate": 1e-3,
    "batch_size": 64,
    "l2": 1e-4,
    "solver": {"_name": "adam", "beta_1": 0.9},
}


def build_model(parameters: dict[str, Any]) -> MLPClassifier:
    """Make the untrained network that the parameters describe; the weights' seed is always the same."""
    solver = dict(parameters["solver"])
    return MLPClassifier(
        hidden_layer_sizes=(int(parameters["hidden_units"]),) * parameters["hidden_layers"],
        activation=parameters["activation"],
        learning_rate_init=parameters["learning_rate"],
        batch_size=parameters["batch_size"],
        alpha=parameters["l2"],
        solver=solver.pop("_name"),
        random_state=0,
        **solver,
    )


def split_digits(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Give the 8x8 images and labels in two halves: one to train with, one to judge with."""
    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(labels))
    train, judge = np.array_split(order, 2)
    return images[train] / 16, labels[train], images[judge] / 16, labels[judge]


def main() -> None:
    """Train epoch by epoch; the final result is the accuracy after the last one."""
    model = build_model({**DEFAULTS, **pitchpipe.get_next_parameter()})
    train_images, train_labels, judge_images, judge_labels = split_digits()
    accuracy = 0.0
    for _ in range(EPOCHS):
        model.partial_fit(train_images, train_labels, classes=np.arange(10))
        accuracy = float(model.score(judge_images, judge_labels))
        pitchpipe.report_intermediate_result(accuracy)
    pitchpipe.report_final_result(accuracy)


if __name__ == "__main__":
    # A diverging network (a huge learning rate with SGD) is a bad result, not a page of warnings.
    warnings.simplefilter("ignore", RuntimeWarning)
    main()
