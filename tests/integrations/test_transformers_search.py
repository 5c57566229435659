"""`trainer.hyperparameter_search(backend="pitchpipe")`, with the real transformers and peft and a tiny model."""

from pathlib import Path
from typing import Any

import pytest

from pitchpipe import choice, loguniform, randint

from .conftest import tiny_bert

transformers = pytest.importorskip("transformers")
pytest.importorskip("pitchpipe.integrations.transformers")

pytestmark = pytest.mark.usefixtures("quiet")
SPACE = {"learning_rate": loguniform(1e-4, 1e-1)}


def make_trainer(folder: Path, model_init: Any = None, **options: Any) -> Any:
    config, data = tiny_bert(8)
    silent = {"save_strategy": "no", "report_to": "none", "disable_tqdm": True, "use_cpu": True}
    arguments = {"eval_strategy": "epoch", "num_train_epochs": 2, **silent, **options}
    return transformers.Trainer(
        model_init=model_init or (lambda: transformers.BertForSequenceClassification(config)),
        args=transformers.TrainingArguments(str(folder), **arguments),
        train_dataset=data,
        eval_dataset=data,
    )


def search(trainer: Any, space: Any, **options: Any) -> Any:
    return trainer.hyperparameter_search(
        lambda _: space, **{"n_trials": 2, "backend": "pitchpipe", "seed": 1, **options}
    )


def test_best_run_is_the_best_of_trainings_with_the_proposed_arguments(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path)
    best = search(trainer, {**SPACE, "num_train_epochs": randint(1, 3)}, n_trials=3)
    trials = best.run_summary.trials
    assert best.objective == min(trial["value"] for trial in trials)
    assert best.hyperparameters == trials[int(best.run_id)]["parameters"]
    for trial in trials:
        assert trial["intermediate_results"] == trial["parameters"]["num_train_epochs"]


def test_trainer_is_left_as_it_was(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, learning_rate=0.5)
    callbacks, make_model = list(trainer.callback_handler.callbacks), trainer.model_init
    search(trainer, SPACE, n_trials=1)
    assert (trainer.args.learning_rate, trainer.args.output_dir) == (0.5, str(tmp_path))
    assert (trainer.callback_handler.callbacks, trainer.model_init) == (callbacks, make_model)


def test_training_gets_the_batch_size_and_a_folder_of_its_own(tmp_path: Path) -> None:
    trainer = make_trainer(tmp_path, save_strategy="epoch", num_train_epochs=1)
    search(trainer, {"per_device_train_batch_size": choice([2])}, n_trials=1)
    assert [path.name for path in (tmp_path / "run-0").iterdir()] == ["checkpoint-4"]  # 8 samples


def test_direction_and_objective_are_the_callers(tmp_path: Path) -> None:
    best = search(
        make_trainer(tmp_path), SPACE, direction="maximize", compute_objective=lambda found: -found["epoch"]
    )
    assert best.objective == -2


def test_training_without_evaluations_is_evaluated_once(tmp_path: Path) -> None:
    best = search(make_trainer(tmp_path, eval_strategy="no"), SPACE, n_trials=1)
    assert best.objective > 0


def test_assessor_ends_a_training_early(tmp_path: Path) -> None:
    rule = {"name": "Threshold", "class_args": {"lower": 1e3}}
    trainer = make_trainer(tmp_path, num_train_epochs=4)
    with pytest.raises(ValueError, match=r"no training has succeeded: \{'EARLY_STOPPED': 1\}"):
        search(trainer, SPACE, n_trials=1, assessor=rule)
    assert trainer.state.epoch == 1


def test_model_gets_the_parameters(tmp_path: Path) -> None:
    peft = pytest.importorskip("peft")
    config, _ = tiny_bert(0)

    def make_model(parameters: dict[str, Any] | None) -> Any:
        lora = peft.LoraConfig(task_type="SEQ_CLS", r=parameters["r"] if parameters else 1)
        return peft.get_peft_model(transformers.BertForSequenceClassification(config), lora)

    trainer = make_trainer(tmp_path, make_model)
    search(trainer, {**SPACE, "r": choice([3])}, n_trials=1)
    assert trainer.model.peft_config["default"].r == 3


@pytest.mark.parametrize(
    ("space", "options", "reason"),
    [
        ({"r": randint(1, 9)}, {}, "'r' is not a training argument, and model_init takes no parameters"),
        (SPACE, {"direction": ["minimize", "maximize"]}, "one objective"),
    ],
)
def test_what_cannot_be_searched_is_said_first(
    tmp_path: Path, space: Any, options: dict[str, Any], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        search(make_trainer(tmp_path), space, **options)


def test_callback_beside_the_search_is_refused(tmp_path: Path) -> None:
    from pitchpipe.integrations.transformers import PitchpipeCallback

    trainer = make_trainer(tmp_path)
    trainer.add_callback(PitchpipeCallback())
    with pytest.raises(ValueError, match="leave PitchpipeCallback out"):
        search(trainer, SPACE)
