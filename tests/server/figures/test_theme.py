"""The colours: readable on both backgrounds, distinct to colour-blind readers."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from pitchpipe.server.figures import template, theme_of
from pitchpipe.server.figures.theme import BLUE, GREEN, OCHRE, PURPLE, SERIES, STATUS_LOOKS, VERMILION

# Machado, Oliveira, Fernandes 2009, severity 1: what dichromats see, on linear RGB.
SIMULATIONS = {
    "protanopia": [
        [0.152286, 1.052583, -0.204868],
        [0.114503, 0.786281, 0.099216],
        [-0.003882, -0.048116, 1.051998],
    ],
    "deuteranopia": [
        [0.367322, 0.860646, -0.227968],
        [0.280085, 0.672501, 0.047413],
        [-0.01182, 0.04294, 0.968881],
    ],
    "tritanopia": [
        [1.255528, -0.076749, -0.178779],
        [-0.078411, 0.930809, 0.147602],
        [0.004733, 0.691367, 0.3039],
    ],
}


def linear(color: str) -> np.ndarray:
    channels = np.array([int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)])
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def luminance(color: str) -> float:
    return float(linear(color) @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    bright, dim = sorted([luminance(one), luminance(other)], reverse=True)
    return (bright + 0.05) / (dim + 0.05)


def lab(rgb: np.ndarray) -> np.ndarray:
    """CIE L*a*b* of linear sRGB."""
    matrix = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
    xyz = np.array(matrix) @ np.clip(rgb, 0, 1) / [0.9505, 1.0, 1.089]
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("name", ["light", "dark"])
def test_every_colour_stands_out_from_the_background(name: str) -> None:
    theme = theme_of(name)  # type: ignore[arg-type]
    colors = {color for color, _ in SERIES} | {look.color for look in STATUS_LOOKS.values()}
    assert {
        color: contrast(color, theme.background) for color in colors if contrast(color, theme.background) < 3
    } == {}
    assert contrast(theme.ink, theme.background) > 12
    assert contrast(theme.faint, theme.background) > 4.5
    assert min(contrast(theme.scale[0], theme.background), 7.0) == 7.0


@pytest.mark.parametrize("name", ["light", "dark"])
def test_colour_scale_leads_steadily_towards_the_background(name: str) -> None:
    theme = theme_of(name)  # type: ignore[arg-type]
    steps = [contrast(color, theme.background) for color in theme.scale]
    assert all(better > worse for better, worse in pairwise(steps))


@pytest.mark.parametrize("sight", SIMULATIONS)
def test_the_two_first_colours_and_the_outcomes_differ_for_colour_blind_readers(sight: str) -> None:
    seen = {
        color: lab(np.array(SIMULATIONS[sight]) @ linear(color))
        for color in (BLUE, VERMILION, GREEN, PURPLE, OCHRE)
    }
    pairs = [(BLUE, VERMILION), (BLUE, OCHRE), (VERMILION, GREEN)]
    assert {pair for pair in pairs if np.linalg.norm(seen[pair[0]] - seen[pair[1]]) < 12} == set()


def test_statuses_differ_by_symbol_and_series_by_colour_or_dash() -> None:
    assert len({look.symbol for look in STATUS_LOOKS.values()}) == len(STATUS_LOOKS)
    assert all(one != other for one, other in combinations(SERIES, 2))


def test_templates_are_made_again_each_time() -> None:
    first = template("light")
    first.layout.font.color = "red"
    assert template("light").layout.font.color != "red"
