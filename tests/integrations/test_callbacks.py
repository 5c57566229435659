"""Each callback, with the real library: what it reports, and that a stop and a spent budget end the training."""

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from pitchpipe.sdk import TrialStopped

from .conftest import StoppedTrial, Trial, tiny_bert

ROUNDS = 4
X = np.random.default_rng(0).normal(size=(200, 30)).astype(np.float32)
y = (X[:, 0] > X[:, 1]).astype(np.float32)


def callback_of(name: str, *arguments: Any, **options: Any) -> Any:
    return importlib.import_module(f"pitchpipe.integrations.{name}").PitchpipeCallback(*arguments, **options)


def train_xgboost(callback: Any, *others: Any) -> Any:
    import xgboost

    train, valid = xgboost.DMatrix(X[:150], y[:150]), xgboost.DMatrix(X[150:], y[150:])
    return xgboost.train(
        {"objective": "binary:logistic", "nthread": 1},
        train,
        ROUNDS,
        evals=[(train, "train"), (valid, "validation")],
        callbacks=[callback, *others],
        verbose_eval=False,
    )


def train_lightgbm(callback: Any, *others: Any) -> Any:
    import lightgbm

    train = lightgbm.Dataset(X[:150], y[:150])
    valid = lightgbm.Dataset(X[150:], y[150:], reference=train)
    return lightgbm.train(
        {"objective": "binary", "verbose": -1, "num_threads": 1, "min_data_in_leaf": 5},
        train,
        ROUNDS,
        valid_sets=[train, valid],
        callbacks=[callback, *others],
    )


def train_catboost(callback: Any, *others: Any) -> Any:
    from catboost import CatBoostClassifier

    model = CatBoostClassifier(iterations=ROUNDS, verbose=False, allow_writing_files=False, thread_count=1)
    return model.fit(X[:150], y[:150], eval_set=(X[150:], y[150:]), callbacks=[callback, *others])


def train_keras(callback: Any, *others: Any) -> Any:
    import keras

    model = keras.Sequential([keras.layers.BatchNormalization(), keras.layers.Dense(1, "sigmoid")])
    model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
    return model.fit(
        X, y, epochs=ROUNDS, batch_size=64, validation_split=0.25, verbose=0, callbacks=[callback, *others]
    )


def train_lightning(callback: Any, *others: Any) -> Any:
    import lightning
    import torch

    class Module(lightning.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.BatchNorm1d(30), torch.nn.Linear(30, 1))

        def training_step(self, batch: Any, index: int) -> Any:
            return torch.nn.functional.mse_loss(self.layers(batch[0]).squeeze(1), batch[1])

        def validation_step(self, batch: Any, index: int) -> Any:
            self.log("val_loss", self.training_step(batch, index))

        def configure_optimizers(self) -> Any:
            return torch.optim.Adam(self.parameters())

    data = torch.utils.data.DataLoader(
        torch.utils.data.TensorDataset(torch.tensor(X), torch.tensor(y)), batch_size=64
    )
    trainer = lightning.Trainer(
        max_epochs=ROUNDS,
        accelerator="cpu",
        logger=False,
        enable_checkpointing=False,
        enable_progress_bar=False,
        enable_model_summary=False,
        callbacks=[callback, *others],
    )
    trainer.fit(Module(), data, data)
    return trainer


def train_transformers(callback: Any, *others: Any, **arguments: Any) -> Any:
    import torch
    from transformers import BertForSequenceClassification, Trainer, TrainingArguments

    torch.manual_seed(0)
    config, data = tiny_bert(32)
    options = {"eval_strategy": "epoch", "save_strategy": "no", "report_to": "none", "disable_tqdm": True}
    trainer = Trainer(
        model=BertForSequenceClassification(config),
        args=TrainingArguments("output", num_train_epochs=ROUNDS, use_cpu=True, **{**options, **arguments}),
        train_dataset=data,
        eval_dataset=data,
        callbacks=[callback, *others],
    )
    trainer.train()
    return trainer


TRAIN: dict[str, Callable[..., Any]] = {
    "xgboost": train_xgboost,
    "lightgbm": train_lightgbm,
    "catboost": train_catboost,
    "keras": train_keras,
    "lightning": train_lightning,
    "transformers": train_transformers,
}
METRIC = {
    "xgboost": "validation-logloss",
    "lightgbm": "valid_1-binary_logloss",
    "catboost": "validation-Logloss",
    "keras": "val_loss",
    "lightning": "val_loss",
    "transformers": "eval_loss",
}
WITHOUT_FINAL = {"lightgbm", "catboost"}


@pytest.fixture(params=sorted(TRAIN))
def library(request: pytest.FixtureRequest, quiet: None) -> str:
    pytest.importorskip(request.param)
    return request.param


def test_metrics_of_each_round_are_reported_and_the_last_ones_are_final(library: str, trial: Trial) -> None:
    TRAIN[library](callback_of(library))
    values = [report["default"] for report in trial.intermediate]
    assert values == [report[METRIC[library]] for report in trial.intermediate]
    assert len(set(values)) == ROUNDS
    assert trial.final == ([] if library in WITHOUT_FINAL else trial.intermediate[-1:])


def test_training_ends_with_the_budget(library: str, trial: Trial) -> None:
    trial.set_budget(2)
    TRAIN[library](callback_of(library))
    assert len(trial.intermediate) == 2
    assert trial.final == ([] if library in WITHOUT_FINAL else trial.intermediate[-1:])


def test_stopped_trial_ends_at_its_next_report(library: str, stopped_trial: StoppedTrial) -> None:
    if library == "catboost":  # hides exceptions; the script's final result raises it again
        TRAIN[library](callback_of(library))
    else:
        with pytest.raises(TrialStopped):
            TRAIN[library](callback_of(library))
    assert stopped_trial.reports == 2


def test_metric_that_is_not_there_is_an_error_with_those_that_are(library: str, trial: Trial) -> None:
    hidden = {"catboost": "CatBoostError"}
    with pytest.raises(Exception, match=f"(?s)'nothing'.*{METRIC[library]}") as raised:
        TRAIN[library](callback_of(library, "nothing"))
    assert raised.typename == hidden.get(library, "ValueError")
    assert trial.intermediate == trial.final == []


def test_outside_of_a_trial_nothing_is_said(library: str, capsys: pytest.CaptureFixture[str]) -> None:
    TRAIN[library](callback_of(library, "nothing"))
    assert "result" not in capsys.readouterr().out


def test_script_may_report_its_own_final_result(library: str, trial: Trial) -> None:
    if library in WITHOUT_FINAL:
        pytest.skip("it always does")
    TRAIN[library](callback_of(library, final=False))
    assert (len(trial.intermediate), trial.final) == (ROUNDS, [])


def test_best_round_of_xgboost_is_final(trial: Trial) -> None:
    xgboost = pytest.importorskip("xgboost")
    # By the training data each round is better than the one before; so the first is the best of the negated metric.
    rule = xgboost.callback.EarlyStopping(rounds=1, data_name="train", metric_name="logloss", maximize=True)
    model = train_xgboost(callback_of("xgboost", "train-logloss"), rule)
    assert model.best_iteration == 0
    assert trial.final == trial.intermediate[:1] != trial.intermediate[-1:]


def test_estimators_and_cross_validation_of_xgboost_report(trial: Trial) -> None:
    xgboost = pytest.importorskip("xgboost")
    model = xgboost.XGBClassifier(n_estimators=3, n_jobs=1, callbacks=[callback_of("xgboost", final=False)])
    model.fit(X, y, eval_set=[(X, y)], verbose=False)
    assert len(trial.intermediate) == 3
    xgboost.cv({"nthread": 1}, xgboost.DMatrix(X, y), 3, nfold=2, callbacks=[callback_of("xgboost")])
    assert trial.final == trial.intermediate[5:]
    assert "test-rmse" in trial.final[0]


def test_estimators_and_cross_validation_of_lightgbm_report(trial: Trial) -> None:
    lightgbm = pytest.importorskip("lightgbm")
    model = lightgbm.LGBMClassifier(n_estimators=3, n_jobs=1, verbose=-1)
    model.fit(X, y, eval_X=X, eval_y=y, eval_metric="auc", callbacks=[callback_of("lightgbm", "valid_0-auc")])
    assert [report["default"] for report in trial.intermediate] == model.evals_result_["valid_0"]["auc"]
    options = {"objective": "binary", "verbose": -1, "num_threads": 1}
    data = lightgbm.Dataset(X, y)
    lightgbm.cv(options, data, 3, nfold=2, callbacks=[callback_of("lightgbm")])
    assert len(trial.intermediate) == 6


def test_best_model_of_the_trainer_is_final(trial: Trial, quiet: None) -> None:
    pytest.importorskip("transformers")
    options = {"save_strategy": "epoch", "load_best_model_at_end": True, "greater_is_better": True}
    options |= {"metric_for_best_model": "eval_loss", "learning_rate": 1e-3}
    train_transformers(callback_of("transformers"), **options)
    best = max(trial.intermediate, key=lambda report: report["eval_loss"])
    assert trial.final == [best] != trial.intermediate[-1:]
