"""`import nni`: its names, who finds them, and that a real nni comes first."""

from __future__ import annotations

import ast
import importlib
import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from pitchpipe.compat.nni.alias import PATH, activate
from pitchpipe.compat.nni.alias.finder import MODULES, Alias

NAMES = [(module, name) for module, names in MODULES.items() for name in names]
WHICH = "import nni, sys; print(getattr(nni, 'WHO', 'alias'), nni.__name__)"


@pytest.fixture
def alias() -> Iterator[None]:
    """Let this process import the alias, during one test."""
    activate()
    activate()
    yield
    found = [finder for finder in sys.meta_path if isinstance(finder, Alias)]
    for finder in found:
        sys.meta_path.remove(finder)
    for module in [name for name in sys.modules if name == "nni" or name.startswith("nni.")]:
        del sys.modules[module]
    assert len(found) == 1


def python(*words: str, path: Sequence[str | Path] = (), **more: Any) -> subprocess.CompletedProcess[str]:
    """Run Python with folders on its path, and variables of the environment if `env` has some."""
    more["env"] = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, path)), **more.get("env", {})}
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, check=False, **more)


def run(code: str, *path: str | Path, **more: Any) -> subprocess.CompletedProcess[str]:
    return python("-P", "-c", code, path=path, **more)


def real_nni(folder: Path) -> Path:
    (folder / "nni").mkdir()
    (folder / "nni" / "__init__.py").write_text("WHO = 'real'\n")
    (folder / "nni" / "tuner.py").write_text("class Tuner: WHO = 'real'\n")
    return folder


@pytest.mark.parametrize(("module", "name"), NAMES, ids=[f"{module}.{name}" for module, name in NAMES])
def test_every_name_is_there(alias: None, module: str, name: str) -> None:
    assert getattr(importlib.import_module(module), name) is not None


def test_python_3_6_reads_the_stand_in() -> None:
    text = (Path(PATH) / "nni" / "__init__.py").read_text()
    tree = ast.parse(text, feature_version=(3, 6))
    futures = [node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == "__future__"]
    assert futures == []  # 3.6 knows no `annotations`: it would end with SyntaxError in place of the advice


# Names that scripts and plug-ins of NNI import, at the paths of every version.
IMPORTED = """
nni: get_next_parameter get_next_parameters get_current_parameter report_intermediate_result report_final_result
nni: get_experiment_id get_trial_id get_sequence_id NoMoreTrialError ClassArgsValidator Experiment trace dump load
nni: silence_stdout enable_global_logging
nni.trial: overwrite_intermediate_seq get_next_parameter
nni.tuner: Tuner
nni.assessor: Assessor AssessResult
nni.utils: merge_parameter OptimizeMode ClassArgsValidator extract_scalar_reward extract_scalar_history MetricType
nni.utils: NodeType split_index json2space json2parameter
nni.parameter_expressions: choice randint uniform quniform loguniform qloguniform normal qnormal lognormal qlognormal
nni.runtime.trial_command_channel: TrialCommandChannel get_default_trial_command_channel
nni.runtime.trial_command_channel: set_default_trial_command_channel
nni.runtime.protocol: CommandType send receive _set_in_file _set_out_file
nni.protocol: CommandType send receive
nni.runtime.tuner_command_channel: CommandType
nni.runtime.tuner_command_channel.legacy: CommandType LegacyCommandChannel send receive _set_in_file _set_out_file
nni.runtime.msg_dispatcher: MsgDispatcher _pack_parameter
nni.runtime.msg_dispatcher_base: MsgDispatcherBase
nni.msg_dispatcher_base: MsgDispatcherBase
nni.recoverable: Recoverable
nni.typehint: Parameters ParameterRecord SearchSpace TrialMetric
nni.common.serializer: trace dump load
nni.common.hpo_utils: format_search_space format_parameters deformat_parameters ParameterSpec FormattedParameters
nni.common.hpo_utils: FormattedSearchSpace validate_search_space Deduplicator OptimizeMode
nni.experiment: Experiment RunMode ExperimentConfig AlgorithmConfig CustomAlgorithmConfig LocalConfig RemoteConfig
nni.experiment: RemoteMachineConfig TrialResult TrialJob TrialMetricData TrialHyperParameters
nni.experiment.config: ExperimentConfig AlgorithmConfig LocalConfig RemoteConfig RemoteMachineConfig
nni.algorithms.hpo.tpe_tuner: TpeTuner
nni.algorithms.hpo.medianstop_assessor: MedianstopAssessor
nni.algorithms.hpo.gp_tuner.gp_tuner: GPTuner
nni.hyperopt_tuner.hyperopt_tuner: HyperoptTuner
nni.evolution_tuner.evolution_tuner: EvolutionTuner
nni.medianstop_assessor: MedianstopAssessor
nni.experiment.config.algorithm: CustomAlgorithmConfig
nni.experiment.config.training_services: LocalConfig
nni.experiment.experiment: Experiment
nni.runtime.env_vars: trial_env_vars dispatcher_env_vars
"""


@pytest.mark.parametrize("line", IMPORTED.split("\n")[1:-1])
def test_names_of_nni_are_imported_from_where_it_has_them(alias: None, line: str) -> None:
    module, _, names = line.partition(": ")
    for name in names.split():
        space: dict[str, object] = {}
        exec(f"from {module} import {name} as found", space)
        assert space["found"] is not None


def test_every_name_is_on_its_page(tree: Path) -> None:
    page = (tree / "docs" / "reference" / "nni.md").read_text()
    shown = set(re.findall(r"`([\w.]+)`", page))
    parts = {"nni.algorithms", "nni.common", "nni.runtime"}
    algorithms = {module.partition(".hpo.")[2] for module in MODULES}
    modules = [module for module in MODULES if module not in parts and ".hpo." not in module]
    modules = [module for module in modules if algorithms.isdisjoint(module.split(".")[1:2])]
    assert [module for module in modules if module not in shown] == []
    names = {name for module, name in NAMES if module in modules}
    assert sorted(names - shown) == []


def test_modules_can_be_reached_without_importing_them(alias: None) -> None:
    import nni

    from pitchpipe import Tuner

    assert nni.tuner.Tuner is Tuner
    assert nni.runtime.msg_dispatcher_base.MsgDispatcherBase.__name__ == "MsgDispatcherBase"


def test_name_without_a_counterpart_says_where_the_others_are(alias: None) -> None:
    import nni

    with pytest.raises(
        AttributeError, match=r"^nni\.choice of NNI has no counterpart here; docs/reference/nni\.md lists"
    ):
        _ = nni.choice
    for module in ("nni.retiarii", "nni.tools.nnictl.updater", "nni.experiment.management"):
        with pytest.raises(
            ModuleNotFoundError, match=r"of NNI has no counterpart here.*; docs/reference/nni\.md lists"
        ) as caught:
            importlib.import_module(module)
        assert module.startswith(caught.value.name or "-")
    assert importlib.util.find_spec("nnictl") is None


def test_star_import_brings_the_names(alias: None) -> None:
    names: dict[str, object] = {}
    exec("from nni.trial import *", names)
    assert set(MODULES["nni.trial"]) <= set(names)


def test_folder_on_the_path_gives_the_alias() -> None:
    code = f"{WHICH}\nfrom nni.utils import merge_parameter\nprint(merge_parameter({{'a': 1}}, {{'a': 2}}))"
    result = run(code, PATH)
    assert (result.stdout, result.stderr) == ("alias nni\n{'a': 2}\n", "")


@pytest.mark.parametrize("before", [True, False])
def test_real_nni_comes_first_wherever_it_is_on_the_path(tmp_path: Path, before: bool) -> None:
    real = real_nni(tmp_path)
    code = f"{WHICH}\nimport nni.tuner; print(nni.tuner.Tuner.WHO)"
    result = run(code, *((real, PATH) if before else (PATH, real)))
    assert (result.stdout, result.stderr) == ("real nni\nreal\n", "")


def test_real_nni_needs_no_pitchpipe(tmp_path: Path) -> None:
    assert python("-P", "-S", "-c", WHICH, path=(PATH, real_nni(tmp_path))).stdout == "real nni\n"


def test_real_nni_comes_before_an_activated_alias(tmp_path: Path) -> None:
    code = f"from pitchpipe.compat.nni.alias import activate; activate()\n{WHICH}"
    assert run(code, real_nni(tmp_path)).stdout == "real nni\n"


def test_python_without_pitchpipe_is_named() -> None:
    result = python("-P", "-S", "-c", "import nni", path=(PATH,))
    assert result.returncode == 1
    why = f"ModuleNotFoundError: import nni: neither nni nor pitchpipe is installed for {sys.executable}"
    assert result.stderr.strip().endswith(
        f"{why}; in a checkout of Pitchpipe: {shlex.quote(sys.executable)} -m pip install ."
    )


def test_real_nni_in_a_trial_says_how_to_remove_it(tmp_path: Path) -> None:
    code, trial = "import nni; print(nni.WHO); nni.get_next_parameter()", {"PITCHPIPE_REPORTS": "spool"}
    done = run(code, PATH, real_nni(tmp_path), env=trial)
    assert (done.returncode, done.stdout) == (1, "real\n")
    where = f"NNI itself is installed in {tmp_path / 'nni'}, and it gets no parameters from Pitchpipe"
    remove = f"{shlex.quote(sys.executable)} -m pip uninstall nni"
    assert done.stderr.endswith(f"RuntimeError: {where}: {remove}\n")


# Scripts by hand: `python -m pitchpipe.nni train.py`


@pytest.mark.parametrize(
    "line", ["import nni.tools", "from nni.experiment import management", "from nni import nas"]
)
def test_script_that_needs_what_is_missing_hears_where_the_names_are(tmp_path: Path, line: str) -> None:
    (tmp_path / "launch.py").write_text(f"{line}\n")
    done = python("-m", "pitchpipe.nni", "launch.py", cwd=tmp_path)
    assert (done.returncode, done.stderr.count("docs/reference/nni.md lists")) == (1, 1)
    assert "importlib" not in done.stderr


def test_script_gets_the_alias_and_its_arguments(tmp_path: Path) -> None:
    (tmp_path / "beside.py").write_text("HERE = 1\n")
    script = "import sys, nni, beside\nprint(sys.argv[1:], nni.get_next_parameter(), beside.HERE)\n"
    (tmp_path / "train.py").write_text(script)
    done = python("-m", "pitchpipe.nni", str(tmp_path / "train.py"), "--epochs", "3")
    assert done.stdout == "['--epochs', '3'] {} 1\n"


@pytest.mark.parametrize(("arguments", "why"), [([], "usage: "), (["no.py"], "there is no script no.py")])
def test_script_has_to_be_there(tmp_path: Path, arguments: list[str], why: str) -> None:
    result = python("-m", "pitchpipe.nni", *arguments, cwd=tmp_path)
    assert result.returncode == 1
    assert why in result.stderr
    assert "Traceback" not in result.stderr


def test_script_is_not_run_with_a_real_nni(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('ran')")
    done = python("-m", "pitchpipe.nni", str(tmp_path / "train.py"), path=(real_nni(tmp_path),))
    assert (done.returncode, done.stdout) == (1, "")
    assert f"NNI itself is installed in {tmp_path / 'nni'}" in done.stderr
    assert done.stderr.endswith("-m pip uninstall nni\n")


def test_traceback_of_a_script_has_its_frames_alone(tmp_path: Path) -> None:
    script = "import nni\nnni.get_next_parameter()\nnni.report_final_result(print)\n"
    (tmp_path / "train.py").write_text(script)
    done = python("-m", "pitchpipe.nni", "train.py", cwd=tmp_path)
    warning, traceback = done.stderr.split("Traceback (most recent call last):\n")
    assert warning.startswith("train.py:2: RuntimeWarning: Running trial code without runtime.")
    lines = [line for line in traceback.splitlines() if line.strip(" ~^")]  # Python 3.13 marks the call
    first, second, last = lines
    assert first == '  File "train.py", line 3, in <module>'
    assert second.strip() == "nni.report_final_result(print)"
    assert last.startswith("TypeError: cannot report <built-in function print>")
    assert done.returncode == 1
