"""What the name and the default of a parameter say about its range, and whether it is worth tuning."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

# Of two values of these, the larger always wins: they say how long to train.
_BUDGETS = frozenset(
    {"epochs", "epoch", "num_epochs", "n_epochs", "max_epochs", "num_train_epochs"}
    | {"n_estimators", "num_boost_round", "num_rounds", "rounds"}
    | {"max_iter", "max_iterations", "n_iter", "num_iterations", "iterations"}
    | {"steps", "num_steps", "max_steps", "train_steps"}
)
_SETTINGS = frozenset(
    {"seed", "random_seed", "random_state", "verbose", "verbosity"}
    | {"num_workers", "workers", "n_jobs", "num_threads", "threads", "nthread", "nthreads", "n_threads"}
    | {"num_classes", "num_class", "n_classes", "objective", "eval_metric", "metric"}
    | {"device", "port", "rank", "local_rank", "world_size", "gpu", "gpu_id", "device_id"}
    | {
        "image_size",
        "img_size",
        "input_size",
        "input_dim",
        "in_channels",
        "in_features",
        "num_features",
        "n_features",
    }
    | {"output_size", "output_dim", "out_channels", "out_features", "vocab_size", "num_samples", "n_samples"}
    | {
        "n_splits",
        "n_folds",
        "num_folds",
        "folds",
        "fold",
        "cv",
        "debug",
        "resume",
        "pin_memory",
        "shuffle",
        "dry_run",
    }
    | {
        "wandb",
        "use_wandb",
        "cuda",
        "use_cuda",
        "no_cuda",
        "overwrite",
        "save",
        "save_model",
        "do_train",
        "do_eval",
    }
    | {"log_interval", "log_every", "print_every", "save_every"}
)
_SHARE = re.compile("momentum|dropout|(^|_)drop(_|$)|drop_?(rate|path|prob)|beta|smoothing")
_SHARE_NEAR_ONE = re.compile("(^|_)(gamma|lambda|lam|discount|decay|rho|tau|ema)(_|$)")
_SPLIT = re.compile(
    "(^|_)(test|val|valid|validation|eval|holdout|train)_(size|split|frac|fraction|ratio|share)$"
)
_FRACTION = re.compile("subsample|colsample|max_(samples|features)|(^|_)(frac|fraction|ratio)(_|$)")
_RATE = re.compile("learning_?rate|(^|_)(lr|eta)(_|$)")
_PENALTY = re.compile("weight_?decay|(^|_)(l1|l2|wd|reg|penalty|regularization)(_|$)")
_WIDTH = re.compile(
    "batch|units|width|hidden|channels|filters|neurons|embed|(^|_)(dim|leaves|bins)(_|$)|leaf_nodes"
)
_COUNT = re.compile("layers|depth|blocks|stages|kernel|heads")
_LARGE = 16  # from here on, doubling an integer matters more than adding one
_LARGEST = 10**9
_TINY = 1e-200
_LONGEST = 50


def folded(name: str) -> str:
    """Return a name as it is compared: `Batch-Size` and `batch_size` are one, and of `optim.lr` only `lr` counts.

    >>> folded("optim.Batch-Size")
    'batch_size'
    """
    return name.replace("-", "_").lower().rpartition(".")[2]


def is_budget(name: str) -> bool:
    """Return whether a parameter says how long to train."""
    return folded(name) in _BUDGETS


def is_setting(name: str) -> bool:
    """Return whether a parameter is nothing to tune: a budget, a seed, a property of the data or of the machine."""
    return is_budget(name) or folded(name) in _SETTINGS


def guessed_spec(
    default: Any,
    choices: Sequence[Any] = (),
    name: str = "",
    low: float | None = None,
    high: float | None = None,
) -> str:
    """Return a range around a default in the form of `--param`; empty where nothing can be guessed.

    Some names say that a number is a share of one, or that it is at most 1. The script allows `low` to `high`.

    >>> guessed_spec(0.01), guessed_spec(64), guessed_spec(3), guessed_spec(0.0), guessed_spec(True)
    ('loguniform:0.0001:1', 'lograndint:16:257', 'randint:1:13', 'uniform:0:1', 'choice:true,false')
    >>> guessed_spec("adam", ["adam", "sgd"]), guessed_spec("relu"), guessed_spec(None)
    ('choice:adam,sgd', 'choice:relu', '')
    >>> guessed_spec(0.9, name="momentum"), guessed_spec(0.3, name="dropout"), guessed_spec(0.999, name="beta2")
    ('uniform:0:0.99', 'uniform:0:0.99', 'uniform:0:0.999')
    >>> guessed_spec(1.0, name="subsample"), guessed_spec(0.2, name="test_size"), guessed_spec(0.1, name="lr")
    ('uniform:0.1:1', 'uniform:0.05:0.95', 'loguniform:0.001:1')
    >>> guessed_spec(64, high=128), guessed_spec(0.01, low=0.001)
    ('lograndint:16:129', 'loguniform:0.001:1')
    """
    name = folded(name)
    if choices:
        return _choice(choices)
    if isinstance(default, bool):
        return "choice:true,false"
    if isinstance(default, str):
        return f"choice:{default}" if default else ""
    if isinstance(default, int) and 0 < default <= _LARGEST:
        return _integers(default, name, low, high)
    if isinstance(default, float) and (default == 0 or _TINY < default < 1 / _TINY):
        kind, least, most = _numbers(default, name)
        return _within(kind, max(least, low if low is not None else least), _least(most, high), ".6g")
    return ""


def _choice(choices: Sequence[Any]) -> str:
    """Return the choice of these values; empty if a spec cannot express one of them, or if they are too many."""
    words = [str(choice).lower() if isinstance(choice, bool) else str(choice) for choice in choices]
    texts = [choice for choice in choices if isinstance(choice, str)]
    is_plain = all(word and word == word.strip() and "," not in word for word in words)
    is_clear = is_plain and len(words) <= _LONGEST and not {"null", "true", "false"}.intersection(texts)
    return f"choice:{','.join(words)}" if is_clear else ""


def _integers(default: int, name: str, low: float | None, high: float | None) -> str:
    least = max(1, default // 4) if low is None else max(1, default // 4, math.ceil(low))
    most = _least(default * 4, None if high is None else math.floor(high))
    is_logarithmic = not _COUNT.search(name) and (default >= _LARGE or _WIDTH.search(name))
    return _within("lograndint" if is_logarithmic else "randint", least, int(most) + 1, "d")


def _numbers(default: float, name: str) -> tuple[str, float, float]:
    """Return the type and the bounds for a number, from its name and its default."""
    if default == 0:
        return ("uniform", 0, 0.1 if _PENALTY.search(name) else 0.99 if _SHARE.search(name) else 1)
    if default < 1 and (_SHARE.search(name) or (default >= 0.5 and _SHARE_NEAR_ONE.search(name))):
        return ("uniform", 0, max(0.99, default))
    if default < 1 and _SPLIT.search(name):
        return ("uniform", min(0.05, default / 2), max(0.95, default))
    if default <= 1 and _FRACTION.search(name):
        return ("uniform", min(0.1, default / 2), 1)
    most = default * 100
    return ("loguniform", default / 100, min(most, 1.0) if default <= 1 and _RATE.search(name) else most)


def _least(most: float, high: float | None) -> float:
    return most if high is None else min(most, high)


def _within(kind: str, least: float, most: float, form: str) -> str:
    """Return the spec; empty if what the script allows leaves nothing between the bounds."""
    return f"{kind}:{least:{form}}:{most:{form}}" if least < most else ""
