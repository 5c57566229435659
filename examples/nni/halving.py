"""A tuner for NNI, as it was: random points, ever closer to the best one."""

from __future__ import annotations

import logging

import nni
import numpy as np
from nni import parameter_expressions
from nni.tuner import Tuner
from nni.utils import OptimizeMode, extract_scalar_reward

_logger = logging.getLogger(__name__)


class HalvingTuner(Tuner):
    def __init__(self, optimize_mode="maximize"):
        self.sign = -1 if OptimizeMode(optimize_mode) is OptimizeMode.Minimize else 1
        self.random = np.random.RandomState(0)
        self.best = None
        self.space = {}
        self.width = 1.0

    def update_search_space(self, search_space):
        self.space = search_space

    def generate_parameters(self, parameter_id, **kwargs):
        if parameter_id >= 1000:
            raise nni.NoMoreTrialError("enough")
        point = {}
        for name, spec in self.space.items():
            point[name] = getattr(parameter_expressions, spec["_type"])(*spec["_value"], self.random)
            if self.best is not None and self.random.uniform() > self.width:
                point[name] = self.best[1][name]
        self.width = max(self.width * 0.9, 0.2)
        return point

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        reward = self.sign * extract_scalar_reward(value)
        if self.best is None or reward > self.best[0]:
            _logger.info("Better: %s", reward)
            self.best = (reward, parameters)
