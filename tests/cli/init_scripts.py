"""Scripts from which `init` writes configs, by their names."""

SCRIPT = """\
import pitchpipe
DEFAULTS = {"lr": 0.01, "units": 64, "solver": {"_name": "sgd"}}
parameters = {**DEFAULTS, "act": "relu", **pitchpipe.get_next_parameter()}
print(parameters["lr"], parameters.get("drop", 0.0), parameters["units"])
pitchpipe.report_final_result(parameters["lr"])
"""
OPTIONS = """\
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--batch-size", type=int, default=64)
parser.add_argument("--units", type=int, default=16)
parser.add_argument("--momentum", type=float, default=0.9)
parser.add_argument("--n-estimators", type=int, default=100)
parser.add_argument("--seed", type=int, default=42)
parser.add_argument("--data", default="data/train.csv")
"""
PARSER = """\
import argparse, pitchpipe
parser = argparse.ArgumentParser()
parser.add_argument("--lr", type=float, default=0.05)
parser.add_argument("--early-stopping", action="store_true")
arguments = parser.parse_args()
pitchpipe.report_final_result(arguments.lr)
"""
REQUIRED = """\
parser.add_argument('folder')
parser.add_argument('extra', nargs='?')
parser.add_argument('--data', required=True)
arguments ="""
PLAIN = """\
p = argparse.ArgumentParser()
p.add_argument('-l', '--learning-rate', type=float, default=0.1)
p.add_argument('--act', choices=['relu', 'tanh'])
p.add_argument('--data')
"""
TASK = {"eta": 0.3, "num_classes": 10, "nthread": 4, "objective": "multi:softmax"}
METRICS = {
    "callback.py": "fit(PitchpipeCallback('val_accuracy'))",
    "monitor.py": "fit(PitchpipeCallback(monitor='eval_loss'))",
    "auc.py": "pitchpipe.report_final_result(auc)",
    "dict.py": "pitchpipe.report_final_result({'val_acc': 1, 's': 2})",
    "value.py": "pitchpipe.report_final_result(value)",
}
SCRIPTS = {
    "train.py": SCRIPT,
    "options.py": OPTIONS,
    "parser.py": PARSER,
    "required.py": PARSER.replace("arguments =", REQUIRED),
    # Whose options cannot be read:
    "known.py": PARSER.replace("parse_args()", "parse_known_args()[0]"),
    "parents.py": PARSER.replace("ArgumentParser()", "ArgumentParser(parents=[base])"),
    "names.py": PARSER.replace('"--early-stopping"', "*names"),
    "made.py": PARSER.replace("argparse.ArgumentParser()", "made()"),
    "plain.py": PLAIN,
    "parses.py": f"{PLAIN}a = pitchpipe.parse_args(p)\n",
    "imported.py": f"{PLAIN}a = parse_args(p)\n",
    "task.py": f"p = {TASK}\np.update(pitchpipe.get_next_parameter())\n",
    "nothing.py": "import pitchpipe\n",
    "broken.py": "def (",
    "empty.py": "print(1)",
    "unknown.py": "pitchpipe.get_next_parameter()['a']",
    "there.yml": "mine",
    **{
        name: f"lr = {{'lr': 0.1, **pitchpipe.get_next_parameter()}}['lr']\n{line}\n"
        for name, line in METRICS.items()
    },
}
