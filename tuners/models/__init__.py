"""Surrogate models: what predicts a result before it is measured."""

from .auto_model import AutoModel
from .auto_settings import Settings
from .gaussian_process import Posterior, Prior, condition, fit, matern
from .learning_curves import LearningCurves, Stage
from .matern_kernel import SMOOTHNESSES
from .neural_features import LinearPosterior, Network, regress
from .parzen import Mixture, ParzenHistory, features_of
from .random_forest import Forest, grow
from .surrogate import Model, Score, SurrogateTuner, Training

__all__ = [
    "SMOOTHNESSES",
    "AutoModel",
    "Forest",
    "LearningCurves",
    "LinearPosterior",
    "Mixture",
    "Model",
    "Network",
    "ParzenHistory",
    "Posterior",
    "Prior",
    "Score",
    "Settings",
    "Stage",
    "SurrogateTuner",
    "Training",
    "condition",
    "features_of",
    "fit",
    "grow",
    "matern",
    "regress",
]
