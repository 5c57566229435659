"""Small scripts of each kind that `init` knows, with the search space and the command that it writes for them."""

from dataclasses import dataclass, field
from typing import Any

LR = ("loguniform", 0.0001, 1)
UNITS = ("lograndint", 16, 257)
OPTIMIZERS = ("choice", "adam", "sgd")


@dataclass
class Kind:
    """A script, files beside it, and what is written for it: types with values, command, defaults, lines to add."""

    script: str
    space: dict[str, tuple[Any, ...]]
    command: str = "python train.py {args}"
    defaults: dict[str, Any] | None = None
    files: dict[str, str] = field(default_factory=dict)
    options: tuple[str, ...] = ()
    adds: tuple[str, ...] = ()


ARGPARSE = """\
import argparse
BATCH = 2**5
DEFAULTS = {"lr": 1e-2}
parser = argparse.ArgumentParser()
"""
TYPED = """\
from dataclasses import dataclass, field
from enum import Enum
from typing import Annotated, Literal, Optional
class Optimizer(Enum):
    ADAM = "adam"
    SGD = "sgd"
"""
CLICK = """\
import click
@click.command()
@click.option("--lr", default=0.01, show_default=True)
@click.option("-u", "--hidden-units", "units", default=64, type=click.IntRange(1, 128))
@click.option("--optimizer", type=click.Choice(["adam", "sgd"]), default="adam")
@click.option("--bias/--no-bias", default=True)
@click.option("--fast", is_flag=True)
@click.option("--layers", multiple=True, default=[1])
def train(lr, units, optimizer, bias, fast, layers): ...
train()
"""
GROUP = """\
import click
@click.group()
@click.option("--scale", default=0.01)
def cli(scale): ...
@cli.command()
@click.argument("path")
def evaluate(path): ...
@cli.command("train")
@click.option("--lr", default=0.01)
@click.option("--data", required=True)
def train(lr, data): ...
cli()
"""
TYPER = f"""\
import typer
{TYPED}
app = typer.Typer()
@app.command()
def main(
    data: str,
    learning_rate: float = 0.01,
    hidden: Annotated[int, typer.Option("--units", min=32)] = 64,
    optimizer: Optimizer = Optimizer.ADAM,
    bias: bool = True,
    dropout: float = typer.Option(0.3, "--drop", max=0.5),
): ...
app()
"""
TYRO = f"""\
import tyro
{TYPED}
@dataclass
class Optim:
    lr: float = 1e-3
    kind: Literal["adam", "sgd"] = "adam"
    use_bias: bool = True
@dataclass
class Config:
    optim: Optim = field(default_factory=lambda: Optim(lr=1e-2))
    hidden_units: int = 64
    name: str = "run"
    resume: Optional[str] = None
    kind: Optimizer = Optimizer.ADAM
config = tyro.cli(Config)
"""
TRANSFORMERS = """\
from dataclasses import dataclass, field
from transformers import HfArgumentParser, TrainingArguments
@dataclass
class ModelArguments:
    drop_path: float = field(default=0.1, metadata={"help": "share"})
    model_name: str = field(default="bert")
    freeze: bool = False
model, training = HfArgumentParser((ModelArguments, TrainingArguments)).parse_args_into_dataclasses()
"""
SIMPLE_PARSING = """\
from dataclasses import dataclass
from simple_parsing import ArgumentParser, choice
@dataclass
class Config:
    lr: float = 0.01
    optimizer: str = choice("adam", "sgd", default="adam")
parser = ArgumentParser()
parser.add_argument("--seed", type=int, default=1)
parser.add_arguments(Config, dest="config")
args = parser.parse_args()
"""
ABSL = """\
from absl import app, flags
FLAGS = flags.FLAGS
flags.DEFINE_float("lr", 0.01, "rate", upper_bound=0.1)
flags.DEFINE_integer("units", 64, "width")
flags.DEFINE_enum("optimizer", "adam", ["adam", "sgd"], "which")
flags.DEFINE_bool("bias", True, "whether")
flags.DEFINE_list("layers", ["1"], "sizes")
flags.DEFINE_string("data", None, "path")
flags.mark_flag_as_required("data")
app.run(lambda argv: None)
"""
HYDRA = """\
import hydra
@hydra.main(version_base=None, config_path="conf", config_name="config")
def train(config): ...
train()
"""
HYDRA_FILES = {
    "conf/config.yaml": "defaults:\n  - optim: adam\n  - extra/deep: one\n  - _self_\nunits: 64\nname: run\n"
    "path: ${oc.env:HOME}\naugment: true\nmodel:\n  dropout: 0.3\n  sizes: [1, 2]\n",
    "conf/optim/adam.yaml": "lr: 1e-2\n_target_: torch.optim.Adam\n",
    "conf/extra/deep/one.yaml": "# @package top\nmomentum: 0.9\n",
}
HYDRA_LAST = 'hydra.run.dir="$PITCHPIPE_OUTPUT_DIR"'
NESTED = """\
config = {
    "optim": {"lr": 0.01, "name": "adam"},
    "model": {"units": 2**6, "name": "mlp", "deeper": {"x": 1}},
    "epochs": 10,
}
"""
ASK = "pitchpipe.get_next_parameter()"

KINDS = {
    "argparse": Kind(
        ARGPARSE
        + "parser.add_argument('--lr', type=float, default=DEFAULTS['lr'])\n"
        + "parser.add_argument('--batch', type=int, default=BATCH * 2)\n"
        + "parser.add_argument('--alpha', type=float, default=1)\n"
        + "parser.add_argument('--size', type=int, nargs=2, default=[3, 4])\n"
        + "parser.add_argument('--none', type=float, default=None)\n"
        + "parser.add_argument('--made', default=f())\n"
        + "parser.add_argument('--k', type=int, choices=range(1, 4), default=2)\n"
        + "parser.add_argument('-wd', type=float, default=0.01)\n"
        + "args = parser.parse_args()\n",
        {
            "lr": LR,
            "batch": UNITS,
            "alpha": ("loguniform", 0.01, 100),
            "k": ("choice", 1, 2, 3),
            "wd": LR,
        },
        "python train.py --lr={lr} --batch={batch} --alpha={alpha} --k={k} -wd={wd}",
    ),
    "argparse with an enum": Kind(
        TYPED + ARGPARSE + "parser.add_argument('--kind', type=Optimizer, default=Optimizer.SGD)\n",
        {"kind": OPTIMIZERS},
        defaults={"kind": "sgd"},
    ),
    "argparse, a boolean that is on": Kind(
        ARGPARSE
        + "parser.add_argument('--lr', type=float, default=0.01)\n"
        + "parser.add_argument('--bias', action=argparse.BooleanOptionalAction, default=True)\n",
        {"lr": LR, "bias": ("choice", True, False)},
        "python train.py --lr={lr} $(test {bias} = true && echo --bias || echo --no-bias)",
        options=("--param", "bias=choice:true,false"),
    ),
    "argparse with commands": Kind(
        ARGPARSE
        + "commands = parser.add_subparsers()\n"
        + "evaluate = commands.add_parser('evaluate')\n"
        + "evaluate.add_argument('--threshold', type=float, default=0.1)\n"
        + "train = commands.add_parser('train')\n"
        + "group = train.add_argument_group('optimizer')\n"
        + "group.add_argument('--lr', type=float, default=0.01)\n"
        + "args = parser.parse_args()\n",
        {"lr": LR},
        "python train.py train {args}",
    ),
    "two parsers": Kind(
        ARGPARSE
        + "other = argparse.ArgumentParser()\n"
        + "other.add_argument('--lr', type=float, default=0.01)\n"
        + "parser.add_argument('--units', type=int, default=64)\n"
        + "args = parser.parse_args()\n",
        {"units": UNITS},
    ),
    "two parsers, one after the other": Kind(
        ARGPARSE
        + "other = argparse.ArgumentParser()\n"
        + "other.add_argument('--lr', type=float, default=0.01)\n"
        + "parser.add_argument('--units', type=int, default=64)\n"
        + "args, rest = other.parse_known_args()\nmore = parser.parse_args(rest)\n",
        {"lr": LR, "units": UNITS},
    ),
    "parsers in functions": Kind(
        "import argparse\n"
        "def options():\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--lr', type=float, default=0.01)\n    return parser\n"
        "def others():\n    parser = argparse.ArgumentParser()\n"
        "    parser.add_argument('--units', type=int, default=64)\n    return parser\n"
        "args = others().parse_args()\n",
        {"units": UNITS},
    ),
    "options of another module": Kind(
        "import argparse\nfrom common import add_options\nparser = argparse.ArgumentParser()\n"
        "add_options(parser)\nargs = parser.parse_args()\n",
        {"lr": LR},
        files={
            "common.py": "RATE = 0.01\ndef add_options(p): p.add_argument('--lr', type=float, default=RATE)\n"
        },
    ),
    "a constant that is an option, too": Kind(
        "import argparse\nlr = 0.01\nLAYERS = 3\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--lr', type=float, default=lr)\nargs = parser.parse_args()\n",
        {"lr": LR},
    ),
    "constants beside options that are not parameters": Kind(
        "import argparse\nRATE = 0.01\nparser = argparse.ArgumentParser()\n"
        "parser.add_argument('--data', default='train.csv')\nargs = parser.parse_args()\n",
        {"RATE": LR},
        "python train.py",
        adds=(f"globals().update({ASK})   # below line 2",),
    ),
    "click": Kind(
        CLICK,
        {"lr": LR, "hidden-units": ("lograndint", 16, 129), "optimizer": OPTIMIZERS},
        defaults={"lr": 0.01, "hidden-units": 64, "optimizer": "adam"},
    ),
    "click, booleans": Kind(
        CLICK,
        {"lr": LR, "bias": ("choice", True, False), "fast": ("choice", True, False)},
        "python train.py --lr={lr} $(test {bias} = true && echo --bias || echo --no-bias)"
        " $(test {fast} = true && echo --fast)",
        options=(
            *("--param", "bias=choice:true,false", "--param", "fast=choice:true,false"),
            *("--without", "hidden-units", "--without", "optimizer"),
        ),
    ),
    "a group of click": Kind(
        GROUP,
        {"scale": LR, "lr": LR},
        "python train.py --scale={scale} train --lr={lr}",
    ),
    "a group of click whose options stay": Kind(
        GROUP, {"lr": LR}, "python train.py train {args}", options=("--fix", "scale")
    ),
    "typer": Kind(
        TYPER,
        {
            "learning-rate": LR,
            "units": ("lograndint", 32, 257),
            "optimizer": OPTIMIZERS,
            "drop": ("uniform", 0, 0.5),
        },
        defaults={"learning-rate": 0.01, "units": 64, "optimizer": "adam", "drop": 0.3},
    ),
    "typer with two commands": Kind(
        "import typer\napp = typer.Typer()\n@app.command()\ndef test_it(x: float = 1.0): ...\n"
        "@app.command()\ndef fit_model(lr: float = 0.01): ...\napp()\n",
        {"lr": LR},
        "python train.py fit-model {args}",
    ),
    "a function run by typer": Kind(
        "import typer\ndef main(lr: float = 0.01, *, bias: bool = False): ...\ntyper.run(main)\n",
        {"lr": LR, "bias": ("choice", True, False)},
        options=("--param", "bias=choice:true,false"),
    ),
    "tyro": Kind(
        TYRO,
        {"optim.lr": LR, "optim.kind": OPTIMIZERS, "hidden-units": UNITS, "kind": ("choice", "ADAM", "SGD")},
        defaults={"optim.lr": 0.01, "optim.kind": "adam", "hidden-units": 64, "kind": "ADAM"},
    ),
    "tyro, a nested boolean": Kind(
        TYRO,
        {"optim.lr": LR, "optim.use-bias": ("choice", True, False)},
        "python train.py --optim.lr={optim.lr}"
        " $(test {optim.use-bias} = true && echo --optim.use-bias || echo --optim.no-use-bias)",
        options=(
            *("--param", "optim.use_bias=choice:true,false"),
            *("--without", "kind", "--without", "optim.kind", "--without", "hidden-units"),
        ),
    ),
    "tyro without flags": Kind(
        "import tyro\ndef main(lr: float = 0.01, bias: bool = True): ...\n"
        "tyro.cli(main, config=(tyro.conf.FlagConversionOff,))\n",
        {"lr": LR, "bias": ("choice", True, False)},
        "python train.py --lr={lr} $(test {bias} = true && echo --bias=True || echo --bias=False)",
        options=("--param", "bias=choice:true,false"),
    ),
    "a class of another module": Kind(
        "import tyro\nfrom settings.base import Config\nconfig = tyro.cli(Config)\n",
        {"lr": LR},
        files={
            "settings/base.py": "from dataclasses import dataclass\n@dataclass\nclass Config:\n    lr: float = 0.01\n"
        },
    ),
    "fire": Kind(
        "import fire\ndef train(lr=0.01, hidden_units=64, data='x'): ...\nfire.Fire(train)\n",
        {"lr": LR, "hidden_units": UNITS},
    ),
    "jsonargparse": Kind(
        "from jsonargparse import CLI\ndef train(lr: float = 0.01, bias: bool = True): ...\nCLI(train)\n",
        {"lr": LR, "bias": ("choice", True, False)},
        "python train.py --lr={lr} --bias={bias}",
        options=("--param", "bias=choice:true,false"),
    ),
    "transformers": Kind(
        TRANSFORMERS,
        {
            "drop_path": ("uniform", 0, 0.99),
            "learning_rate": ("loguniform", 5e-07, 0.005),
            "weight_decay": ("uniform", 0, 0.1),
            "per_device_train_batch_size": ("lograndint", 2, 33),
        },
    ),
    "simple_parsing": Kind(SIMPLE_PARSING, {"lr": LR, "optimizer": OPTIMIZERS}),
    "absl": Kind(
        ABSL,
        {"lr": ("loguniform", 0.0001, 0.1), "units": UNITS, "optimizer": OPTIMIZERS},
    ),
    "absl, a boolean": Kind(
        ABSL,
        {
            "lr": ("loguniform", 0.0001, 0.1),
            "units": UNITS,
            "optimizer": OPTIMIZERS,
            "bias": ("choice", True, False),
        },
        "python train.py --lr={lr} --units={units} --optimizer={optimizer} --bias={bias}",
        options=("--param", "bias=choice:true,false"),
    ),
    "hydra": Kind(
        HYDRA,
        {
            "optim.lr": LR,
            "top.momentum": ("uniform", 0, 0.99),
            "units": UNITS,
            "model.dropout": ("uniform", 0, 0.99),
        },
        "python train.py optim.lr={optim.lr} top.momentum={top.momentum} units={units}"
        f" model.dropout={{model.dropout}} {HYDRA_LAST}",
        defaults={"optim.lr": 0.01, "top.momentum": 0.9, "units": 64, "model.dropout": 0.3},
        files=HYDRA_FILES,
    ),
    "hydra with a class": Kind(
        TYPED
        + "import hydra\nfrom hydra.core.config_store import ConfigStore\n"
        + "@dataclass\nclass Config:\n    lr: float = 0.01\n    bias: bool = True\n"
        + "    kind: Optimizer = Optimizer.ADAM\n"
        + "ConfigStore.instance().store(name='main', node=Config)\n"
        + "@hydra.main(version_base=None, config_name='main')\ndef train(config): ...\n",
        {"lr": LR, "kind": ("choice", "ADAM", "SGD"), "bias": ("choice", True, False)},
        f"python train.py lr={{lr}} kind={{kind}} bias={{bias}} {HYDRA_LAST}",
        options=("--param", "bias=choice:true,false"),
    ),
    "omegaconf": Kind(
        "from omegaconf import OmegaConf\n"
        "config = OmegaConf.merge(OmegaConf.load('my.yaml'), OmegaConf.from_cli())\n",
        {"model.units": UNITS},
        "python train.py model.units={model.units}",
        files={"my.yaml": "model: {units: 64}\n"},
    ),
    "a dict": Kind(
        "import torch\nconfig = {'lr': 1e-2, 'units': 64, 'epochs': 5, 'bias': True, 'data': 'x', 'made': f()}\n",
        {"lr": LR, "units": UNITS, "bias": ("choice", True, False)},
        "python train.py",
        {"lr": 0.01, "units": 64, "bias": True},
        adds=(f"config.update({ASK})   # below line 2",),
    ),
    "a nested dict": Kind(
        NESTED,
        {"lr": LR, "units": UNITS},
        "python train.py",
        adds=(
            f"parameters = {ASK}   # below line 5",
            'for part in (config, config["optim"], config["model"]):',
            "    part.update({key: parameters[key] for key in part.keys() & parameters.keys()})",
        ),
    ),
    "a namespace": Kind(
        "from types import SimpleNamespace\nargs = SimpleNamespace(lr=0.01, test_size=0.2)\n",
        {"lr": LR, "test_size": ("uniform", 0.05, 0.95)},
        "python train.py",
        adds=(f"vars(args).update({ASK})   # below line 2",),
    ),
    "a dataclass": Kind(
        TYPED
        + "@dataclass\nclass Base:\n    lr: float = 0.01\n"
        + "@dataclass\nclass Config(Base):\n    units: int = 64\n    kind: Literal['adam', 'sgd'] = 'adam'\n"
        + "    color: Optimizer = Optimizer.ADAM\n    where: str = 'here'\nconfig = Config()\n",
        {"lr": LR, "units": UNITS, "kind": OPTIMIZERS},
        "python train.py",
        adds=(f"Config(**{ASK})   # in place of Config()",),
    ),
    "a dataclass with values": Kind(
        "from dataclasses import dataclass\n@dataclass\nclass A:\n    lr: float = 1.0\na = A(lr=0.01)\n",
        {"lr": LR},
        "python train.py",
        adds=(f"a = dataclasses.replace(a, **{ASK})   # below line 5, with import dataclasses",),
    ),
    "a class": Kind(
        "class CFG:\n    lr = 0.01\n    seed = 1\nprint(CFG.lr)\n",
        {"lr": LR},
        "python train.py",
        adds=(f"for name, value in {ASK}.items():   # below line 3", "    setattr(CFG, name, value)"),
    ),
    "variables": Kind(
        "LR = 1e-2\nMOMENTUM = 0.9\nSEED = 1\nEPOCHS: int = 5\nbest = 0.5\nbest = 0.6\n"
        "model = make(MOMENTUM)\nUNITS = 64\nif __name__ == '__main__':\n    BATCH = 64\n",
        {"LR": LR, "UNITS": UNITS, "BATCH": UNITS},
        "python train.py",
        adds=(f"globals().update({ASK})   # below line 10",),
    ),
    "an edited dict": Kind(
        f"import pitchpipe\nconfig = {{'lr': 1e-2}}\nconfig.update({ASK})\n", {"lr": LR}, "python train.py"
    ),
    "an edited dataclass": Kind(
        "import pitchpipe\nfrom dataclasses import dataclass\n@dataclass\nclass Config:\n    lr: float = 0.01\n"
        f"config = Config(**{ASK})\n",
        {"lr": LR},
        "python train.py",
    ),
    "an edited class": Kind(
        "import pitchpipe\nclass CFG:\n    lr = 0.01\n"
        f"for name, value in {ASK}.items():\n    setattr(CFG, name, value)\n",
        {"lr": LR},
        "python train.py",
    ),
}
