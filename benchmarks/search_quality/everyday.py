"""Ordinary tasks without a model to train: forecasts, filters, controllers, simulators, compression, designs."""

from __future__ import annotations

import bz2
import heapq
import lzma
import math
import zlib
from functools import cache
from typing import Any

import numpy as np
from ordinary import flaky, integers, log, noisy, option, pick, samples, stepped, task, times, uniform


@cache
def _sales(noise: float, trend: float) -> np.ndarray:
    rng, month = np.random.default_rng(4), np.arange(96)
    season = 1 + 0.3 * np.sin(month * np.pi / 6) + 0.15 * np.cos(month * np.pi / 3)
    return (100 + trend * month) * season + noise * rng.normal(size=96)


@task("smoothing-sales", 8.0, 1.5, alpha=uniform(0, 1), beta=uniform(0, 1), gamma=uniform(0, 1),
      season=integers(2, 37),
      kind=pick("additive", "multiplicative"), damping=uniform(0.5, 1))  # fmt: skip
@task("smoothing-noise", 40.0, 0.2, report=noisy(1.0), alpha=log(1e-6, 1), beta=log(1e-6, 1), gamma=uniform(0, 1),
      season=stepped(2, 36))  # fmt: skip
def _smoothing(noise: float, trend: float, alpha: float, beta: float, gamma: float, season: float,
               kind: str = "additive", damping: float = 1.0) -> float:  # fmt: skip
    """Return the error of the forecasts three months ahead (Holt and Winters)."""
    values, period, errors = _sales(noise, trend), int(season), []
    multiplies = kind == "multiplicative"
    level, slope = float(values[:period].mean()), 0.0
    seasons = [float(v / level if multiplies else v - level) for v in values[:period]]
    for now in range(period, len(values) - 3):
        place, value = now % period, float(values[now])
        before = level
        clean = value / max(seasons[place], 0.1) if multiplies else value - seasons[place]
        level = alpha * clean + (1 - alpha) * (level + damping * slope)
        slope = beta * (level - before) + (1 - beta) * damping * slope
        rest = value / max(level, 1.0) if multiplies else value - level
        seasons[place] = gamma * rest + (1 - gamma) * seasons[place]
        ahead, then = level + sum(damping**i for i in (1, 2, 3)) * slope, seasons[(now + 3) % period]
        errors.append(abs((ahead * then if multiplies else ahead + then) - values[now + 3]))
    return float(np.mean(errors[36 - period :]))


@task("autoregression", lags=integers(1, 48), ridge=uniform(0, 1e4), difference=integers(0, 4),
      window=stepped(10, 96),
      logarithm=pick(True, False))  # fmt: skip
def _autoregression(lags: int, ridge: float, difference: int, window: float, logarithm: bool) -> float:
    values = _sales(12.0, 1.0)
    series = np.diff(np.log(values) if logarithm else values, difference)
    if not 8 + lags < min(len(series), int(window) + 8):
        raise ValueError("the window is too short")
    rows = np.lib.stride_tricks.sliding_window_view(series, lags + 1)
    train, test = rows[-int(window) : -24], rows[-24:]
    if len(train) < 2:
        raise ValueError("no data")
    middle = train.mean()
    inputs, outputs = train[:, :-1] - middle, train[:, -1] - middle
    found = np.linalg.solve(inputs.T @ inputs + (ridge + 1e-9) * np.eye(lags), inputs.T @ outputs)
    error = np.abs((test[:, :-1] - middle) @ found + middle - test[:, -1]).mean()
    return float(error * (values.mean() if logarithm else 1))


@cache
def _track() -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(5)
    truth = np.cumsum(np.cumsum(0.05 * rng.normal(size=250)))
    return truth, truth + 2.0 * rng.normal(size=250)


@task("kalman-position", q=uniform(0, 100), r=uniform(0, 100), initial=uniform(0, 1000))
@task(
    "kalman-speed",
    report=flaky(0.05),
    q=log(1e-10, 1e4),
    r=log(1e-6, 1e6),
    initial=log(1e-3, 1e6),
    fade=uniform(0.9, 1.1),
)
def _kalman(q: float, r: float, initial: float, fade: float = 1.0) -> float:
    truth, seen = _track()
    position, speed, a, b, c = float(seen[0]), 0.0, initial, 0.0, initial  # covariance [[a, b], [b, c]]
    error = 0.0
    for real, value in zip(truth.tolist(), seen.tolist(), strict=True):
        position += speed
        a, b, c = fade * (a + 2 * b + c + q / 4), fade * (b + c + q / 2), fade * (c + q)
        gain, rate = a / (a + r), b / (a + r)
        innovation = value - position
        position, speed = position + gain * innovation, speed + rate * innovation
        a, b, c = (1 - gain) * a, (1 - gain) * b, c - rate * b
        error += (position - real) ** 2
    return error / len(truth)


@cache
def _prices(seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    drift = np.repeat(rng.normal(0, 0.004, size=30), 30)
    return np.exp(np.cumsum(drift + 0.012 * rng.normal(size=900)))


@task("crossover", fast=integers(1, 100), slow=integers(2, 300), threshold=uniform(0, 0.2))
@task("crossover-stops", fast=stepped(1, 50), slow=stepped(2, 200), threshold=uniform(-0.1, 0.1), stop=uniform(0, 1),
      fee=pick(0.001), size=uniform(0.01, 3))  # fmt: skip
def _crossover(
    fast: float, slow: float, threshold: float, stop: float = 1.0, fee: float = 0.001, size: float = 1.0
) -> float:
    """Return minus the growth, with the risk taken off, of following trends on three made markets."""
    if fast >= slow:
        raise ValueError("the fast mean is slower than the slow one")
    total = 0.0
    for seed in (6, 7, 8):
        prices = _prices(seed)
        sums = np.cumsum(np.append(0, prices))
        means = [(sums[300:-1] - sums[300 - n : -1 - n]) / n for n in (int(fast), int(slow))]
        holds = (means[0] > means[1] * (1 + threshold)).astype(float)
        peak = np.maximum.accumulate(prices)[299:-1]
        holds *= size * (prices[299:-1] > (1 - stop) * peak)
        moves = np.diff(np.log(prices))[299:] * holds
        moves -= fee * np.abs(np.diff(holds, prepend=0.0))
        total -= moves.sum() - 5 * (moves**2).sum()
    return total / 3


@task("smoothing-filter", window=integers(3, 120), order=integers(0, 9), passes=integers(1, 6),
      mode=pick("interp", "nearest", "mirror", "wrap", "constant"))  # fmt: skip
def _filter(window: int, order: int, passes: int, mode: str) -> float:
    from scipy.signal import savgol_filter

    time = np.linspace(0, 1, 300)
    truth = np.sin(6 / (time + 0.2)) + (time > 0.6)
    found = truth + 0.3 * np.random.default_rng(9).normal(size=300)
    for _ in range(passes):
        found = savgol_filter(found, window, order, mode=mode)
    return float(np.mean((found - truth) ** 2))


@task("peaks", height=uniform(-2, 5), prominence=uniform(0, 8), distance=stepped(1, 100), width=uniform(0, 20),
      smooth=stepped(1, 30))  # fmt: skip
def _peaks(height: float, prominence: float, distance: float, width: float, smooth: float) -> float:
    from scipy.signal import find_peaks

    rng = np.random.default_rng(10)
    centres = np.sort(rng.choice(np.arange(30, 1970), 30, replace=False))
    signal = 0.4 * rng.normal(size=2000) + np.sin(np.arange(2000) / 150)
    for centre, size in zip(centres, rng.uniform(1, 4, 30), strict=True):
        signal += size * np.exp(-(((np.arange(2000) - centre) / 6) ** 2))
    signal = np.convolve(signal, np.ones(int(smooth)) / int(smooth), "same")
    found = find_peaks(signal, height, distance=int(distance), prominence=prominence, width=width)[0]
    hits = (np.abs(found[:, None] - centres) <= 5).any(axis=0).sum()
    return 1 - 2 * hits / (len(found) + len(centres))


@task("segmentation", sigma=uniform(0, 20), threshold=uniform(0, 1), opening=integers(0, 12), closing=integers(0, 12),
      smallest=stepped(0, 500), method=pick("gaussian", "median", "uniform"))  # fmt: skip
def _segmentation(
    sigma: float, threshold: float, opening: int, closing: int, smallest: float, method: str
) -> float:
    """Return how far a mask is from round spots in a noisy image (1 - Dice)."""
    from scipy import ndimage

    rng, (y, x) = np.random.default_rng(11), np.mgrid[:64, :64]
    truth = np.any(
        [(x - a) ** 2 + (y - b) ** 2 < r * r for a, b, r in rng.uniform((5, 5, 2), (59, 59, 8), (9, 3))],
        axis=0,
    )
    image = 0.5 * truth + 0.2 + 0.002 * x + 0.35 * rng.normal(size=truth.shape)
    if method == "gaussian":
        image = ndimage.gaussian_filter(image, sigma)
    else:
        image = getattr(ndimage, f"{method}_filter")(image, max(int(sigma) // 2, 1))
    mask = image > threshold
    for size, step in ((opening, ndimage.binary_opening), (closing, ndimage.binary_closing)):
        mask = step(mask, np.ones((size, size))) if size > 1 else mask
    labels, _ = ndimage.label(mask)
    sizes = np.bincount(labels.ravel())
    mask &= sizes[labels] >= smallest
    return 1 - 2 * (mask & truth).sum() / max(mask.sum() + truth.sum(), 1)


@task("pid-tank", 1, 0.0, kp=uniform(0, 100), ki=uniform(0, 100), kd=uniform(0, 100))
@task(
    "pid-delay",
    1,
    0.4,
    report=noisy(0.01),
    kp=uniform(0, 20),
    ki=uniform(0, 20),
    kd=uniform(0, 20),
    limit=uniform(0.1, 100),
)
@task("pid-motor", 2, 0.1, kp=log(1e-4, 1e4), ki=log(1e-6, 1e4), kd=log(1e-6, 1e4), filter=uniform(0, 1),
      antiwindup=pick(True, False))  # fmt: skip
def _pid(order: int, delay: float, kp: float, ki: float, kd: float, limit: float = 50.0, filter: float = 0.0,
         antiwindup: bool = False) -> float:  # fmt: skip
    """Return the error over time of a controlled process of first or second order; it may diverge."""
    step, value, speed, total, slope, before, cost = 0.02, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0
    queue = [0.0] * (int(delay / step) + 1)
    for now in range(400):
        error = (1.0 if now < 250 else 0.4) - value
        slope = filter * slope + (1 - filter) * (error - before) / step
        before = error
        wanted = kp * error + ki * total + kd * slope
        action = min(max(wanted, -limit), limit)
        if not antiwindup or action == wanted:
            total += step * error
        queue.append(action)
        push = queue.pop(0)
        if order == 1:
            value += step * (push - value) / 0.8
        else:
            speed += step * (push - 0.6 * speed - 0.5 * value) / 0.3
            value += step * speed
        cost += step * (abs(before) + 1e-3 * push * push)
    return cost


@task("cart-pole", 4, a=uniform(-100, 100), b=uniform(-100, 100), c=uniform(-100, 100), d=uniform(-100, 100))
@task(
    "cart-pole-noise",
    2,
    report=noisy(0.02),
    a=uniform(0, 10),
    b=uniform(0, 10),
    c=uniform(0, 200),
    d=uniform(0, 50),
)
def _cart_pole(runs: int, a: float, b: float, c: float, d: float) -> float:
    """Return the share of the time that a pole does not stand, and a little of the way."""
    cost = 0.0
    for angle in np.linspace(0.05, 0.25, runs).tolist():
        place, speed, turn = 0.3, 0.0, 0.0
        for now in range(200):
            force = min(max(a * place + b * speed + c * angle + d * turn, -10.0), 10.0)
            inner = (force + 0.05 * turn * turn * math.sin(angle)) / 1.1
            bend = (9.8 * math.sin(angle) - math.cos(angle) * inner) / (
                0.5 * (4 / 3 - 0.1 * math.cos(angle) ** 2 / 1.1)
            )
            push = inner - 0.05 * bend * math.cos(angle) / 1.1
            place, speed = place + 0.02 * speed, speed + 0.02 * push
            angle, turn = angle + 0.02 * turn, turn + 0.02 * bend
            if abs(angle) > 0.5 or abs(place) > 2.4:
                cost += (200 - now) / 200
                break
            cost += 0.1 * abs(place) / 200
    return cost / runs


@cache
def _arrivals(rate: float) -> tuple[list[float], list[float]]:
    rng = np.random.default_rng(12)
    bursts = np.repeat(rng.choice([0.6, 1.0, 2.2], 20), 30)
    return np.cumsum(rng.exponential(1 / (rate * bursts))).tolist(), rng.lognormal(0, 0.7, 600).tolist()


@task("service", 4.0, report=times(0.1), servers=integers(1, 64), batch=stepped(1, 32), wait=uniform(0, 10),
      queue=integers(1, 1000), price=pick(0.05))  # fmt: skip
@task("service-bursts", 12.0, report=times(0.25), servers=stepped(1, 100), batch=stepped(1, 64), wait=log(1e-4, 100),
      queue=log(1, 1e5), timeout=uniform(0, 100), retries=integers(0, 6))  # fmt: skip
def _service(rate: float, servers: float, batch: float, wait: float, queue: float, price: float = 0.05,
             timeout: float = 1e9, retries: int = 0) -> float:  # fmt: skip
    """Return the late latency of requests that are served in batches, with the price of servers and of what is lost."""
    times_of, sizes = _arrivals(rate)
    free = [0.0] * int(servers)
    late, lost, first = [], 0, 0
    while first < len(times_of):
        last = min(first + int(batch), len(times_of))
        while last > first + 1 and times_of[last - 1] > times_of[first] + wait:
            last -= 1
        ready = times_of[last - 1] if last - first == int(batch) else times_of[first] + wait
        start = max(heapq.heappop(free), ready)
        end = start + 0.6 + 0.25 * sum(sizes[first:last]) ** 0.8
        heapq.heappush(free, end)
        for place in range(first, last):
            took = end - times_of[place]
            is_lost = took > timeout or (start - ready) * rate > queue
            lost += is_lost
            late.append(took * (1 + 0.1 * retries) if not is_lost or retries else timeout)
        first = last
    return (
        float(np.quantile(np.minimum(late, 1e4), 0.95))
        + price * int(servers)
        + 20 * lost / len(sizes) / (1 + retries)
    )


@task("blocking", report=times(0.03), rows=integers(1, 512), columns=integers(1, 512), depth=integers(1, 512),
      unroll=pick(1, 2, 4, 8, 16), order=pick("ijk", "ikj", "jik", "jki", "kij", "kji"), prefetch=integers(0, 32),
      threads=stepped(1, 64))  # fmt: skip
def _blocking(
    rows: int, columns: int, depth: int, unroll: int, order: str, prefetch: int, threads: float
) -> float:
    """Return modelled seconds of a blocked product of matrices."""
    size, count = 1024, int(threads)
    used = 8 * (rows * columns + rows * depth + depth * columns)
    miss = sum(
        cost * min(max(used / cache - 0.7, 0.0), 3.0)
        for cache, cost in ((32e3, 0.4), (256e3, 1.0), (8e6, 3.0))
    )
    traffic = 1 / rows + 1 / columns + 0.3 / depth
    strides = {"ijk": 1.6, "ikj": 1.0, "jik": 1.7, "jki": 2.6, "kij": 1.05, "kji": 2.5}[order]
    loop = 1 + 0.8 / min(unroll, depth) + (0.15 if unroll > 8 else 0) + 0.002 * (prefetch - 9) ** 2 / 8
    blocks = math.ceil(size / rows) * math.ceil(size / columns)
    speed = min(count, blocks, 16) * (0.97 if count <= 16 else 0.9 - 0.004 * count)
    waste = (
        math.ceil(size / rows)
        * rows
        * math.ceil(size / columns)
        * columns
        * math.ceil(size / depth)
        * depth
        / size**3
    )
    return strides * loop * waste * (1 + miss + 12 * traffic) / speed + 0.003 * count


@cache
def _content(kind: str) -> bytes:
    rng = np.random.default_rng(13)
    if kind == "text":
        words = ["".join(rng.choice(list("aeinorstlm"), rng.integers(2, 8))) for _ in range(300)]
        return " ".join(rng.choice(words, 3000, p=rng.dirichlet(np.full(300, 0.2)))).encode()
    walk = np.cumsum(rng.integers(-3, 4, size=(1500, 3)), axis=0).astype(np.int32)
    return walk.tobytes() if kind == "numbers" else "\n".join(map(str, walk.tolist())).encode()


@task("zlib-text", "text", level=integers(0, 10), window=integers(8, 16), memory=integers(1, 10),
      strategy=integers(0, 5),
      block=stepped(256, 20000, 256))  # fmt: skip
def _zlib(kind: str, level: int, window: int, memory: int, strategy: int, block: float) -> float:
    data, size = _content(kind), 0
    for first in range(0, len(data), int(block)):
        packer = zlib.compressobj(level, zlib.DEFLATED, window, memory, strategy)
        size += len(packer.compress(data[first : first + int(block)]) + packer.flush()) + 8
    return size / len(data) + 0.004 * level + 1e-6 * block


@task("lzma-numbers", "numbers", lc=integers(0, 5), lp=integers(0, 5), pb=integers(0, 5), depth=stepped(0, 200),
      nice_len=integers(2, 274), mf=pick("HC3", "HC4", "BT2", "BT3", "BT4"), mode=pick("FAST", "NORMAL"),
      delta=integers(0, 20))  # fmt: skip
@task("lzma-lines", "lines", lc=stepped(0, 4), lp=stepped(0, 4), pb=stepped(0, 5), depth=integers(0, 100),
      nice_len=integers(1, 320), mf=pick("HC3", "HC4", "BT2", "BT3", "BT4"), mode=pick("FAST", "NORMAL"),
      delta=integers(0, 3))  # fmt: skip
def _lzma(kind: str, mf: str, mode: str, delta: float, **settings: float) -> float:
    numbers = {name: int(value) for name, value in settings.items()}
    packer = {
        "id": lzma.FILTER_LZMA2,
        "preset": 1,
        "mf": getattr(lzma, f"MF_{mf}"),
        "mode": getattr(lzma, f"MODE_{mode}"),
    }
    filters = [packer | numbers]
    if delta:
        filters.insert(0, {"id": lzma.FILTER_DELTA, "dist": int(delta)})
    try:
        size = len(lzma.compress(_content(kind), lzma.FORMAT_RAW, filters=filters))
    except lzma.LZMAError as error:
        raise ValueError("these options do not go together") from error
    return size / len(_content(kind))


@task("codec", codec=pick(option("zlib", level=integers(1, 10), window=integers(9, 16)), option("bz2",
      level=integers(1, 10)),
      option("lzma", preset=integers(0, 7), lc=integers(0, 5))), transpose=pick(1, 2, 3, 4, 6, 12),
      delta=integers(0, 4),
      chunk=stepped(512, 18000, 512))  # fmt: skip
def _codec(codec: dict[str, Any], transpose: int, delta: int, chunk: float) -> float:
    values = np.frombuffer(_content("numbers"), np.uint8)
    for _ in range(delta):
        values = np.diff(values, prepend=values[:1])
    data, size, name = values.reshape(-1, transpose).T.tobytes(), 0.0, codec["_name"]
    for first in range(0, len(data), int(chunk)):
        part = data[first : first + int(chunk)]
        if name == "zlib":
            packer = zlib.compressobj(codec["level"], zlib.DEFLATED, codec["window"])
            size += len(packer.compress(part) + packer.flush())
        elif name == "bz2":
            size += len(bz2.compress(part, codec["level"])) + 300
        else:
            filters = [{"id": lzma.FILTER_LZMA2, "preset": codec["preset"], "lc": codec["lc"]}]
            size += len(lzma.compress(part, lzma.FORMAT_RAW, filters=filters)) + 100
    return size / len(data)


_FLAGS = pick(True, False)


@task(
    "flags",
    10,
    1,
    report=times(0.02),
    **{f"f{i}": _FLAGS for i in range(10)},
    inline=stepped(0, 1000),
    unroll=integers(1, 65),
)
@task(
    "flags-many", 20, 2, report=times(0.01), **{f"f{i}": _FLAGS for i in range(20)}, inline=integers(0, 2000)
)
def _flags(count: int, seed: int, inline: float, unroll: int = 4, **flags: bool) -> float:
    """Return modelled seconds of a program: few flags matter, and some pairs."""
    rng = np.random.default_rng(100 + seed)
    alone = rng.normal(0, 1, count) * (rng.random(count) < 0.4)
    pairs = rng.normal(0, 1.5, (count, count)) * (rng.random((count, count)) < 2.5 / count**1.5)
    bits = np.array([flags[f"f{i}"] for i in range(count)], dtype=float)
    gain = alone @ bits + bits @ np.triu(pairs, 1) @ bits
    return math.exp(
        0.06 * gain
        + 0.05 * (math.log1p(inline) - 4.6) ** 2
        + 0.04 * (math.log2(unroll) - 2) ** 2 / (1 + bits[0])
    )


@task("levels", opt=pick(option("O0"), option("O1", fast=_FLAGS), option("O2", vector=pick(option("off"),
      option("on", width=pick(2, 4, 8, 16))), unroll=integers(1, 33)), option("O3", vector=pick(option("off"),
      option("on", width=pick(2, 4, 8, 16))), unroll=integers(1, 33), inline=uniform(0, 5000)),
      option("Ofast-unsafe")),
      lto=pick("none", "thin", "full"), march=pick("generic", "native"), report=times(0.03))  # fmt: skip
def _levels(opt: dict[str, Any], lto: str, march: str) -> float:
    name = opt["_name"]
    if name == "Ofast-unsafe" and lto == "full":
        raise ValueError("the linker ran out of memory")
    seconds = {"O0": 5.0, "O1": 2.2, "O2": 1.6, "O3": 1.55, "Ofast-unsafe": 1.5}[name] - 0.1 * opt.get(
        "fast", False
    )
    seconds *= 1 + 0.02 * (math.log2(opt.get("unroll", 4)) - 2.5) ** 2
    seconds *= (
        1
        + 0.03 * (math.log1p(opt.get("inline", 100.0)) - 5.5) ** 2
        - 0.08 * (lto == "full")
        - 0.05 * (lto == "thin")
    )
    width = opt.get("vector", {}).get("width", 0)
    best = 8 if march == "native" else 4
    return seconds * (1 - 0.25 * (width == best) - 0.1 * (0 < width < best) + 0.2 * (width > best))


@task("database", 32.0, report=times(0.05), buffers=uniform(0.01, 40), work=uniform(0.001, 1),
      connections=integers(1, 1000),
      wal=stepped(1, 512), checkpoint=uniform(10, 3600), random_cost=uniform(0.1, 100), parallel=integers(0, 65),
      jit=pick(True, False), sync=pick("on", "off", "local"))  # fmt: skip
@task("database-small", 4.0, report=flaky(0.05, times(0.05)), buffers=log(1e-3, 64), work=log(1e-4, 4),
      connections=integers(1, 500),
      wal=log(1, 4096), checkpoint=log(1, 1e4), random_cost=pick(1, 2, 4, 10), parallel=integers(0, 17),
      jit=pick(True, False),
      sync=pick("on", "off"))  # fmt: skip
def _database(memory: float, buffers: float, work: float, connections: int, wal: float, checkpoint: float,
              random_cost: float, parallel: int, jit: bool, sync: str) -> float:  # fmt: skip
    """Return the modelled milliseconds of a transaction; a server without memory does not start."""
    active = min(connections, 64)
    if buffers + 0.3 * work * active > memory:
        raise MemoryError("out of memory")
    hits = 1 - math.exp(-3.5 * buffers / memory - 0.2)
    rest = (memory - buffers) / memory
    reads = (1 - hits) * (6 - 3 * rest)
    sorts = 1.5 / (1 + 40 * work / memory * 8)
    plan = (
        0.4 * abs(math.log10(random_cost / 1.5))
        + (0.3 if jit else 0)
        + 0.5 / (1 + parallel)
        + 0.02 * parallel
    )
    writes = (
        {"on": 1.2, "local": 1.1, "off": 0.5}[sync]
        + 2 / math.sqrt(wal)
        + 0.5 * abs(math.log(checkpoint / 900)) / 3
    )
    crowd = 30 / connections + 0.012 * connections
    return (reads + sorts + plan + writes) * (1 + 0.3 * crowd)


@cache
def _demand() -> np.ndarray:
    return np.random.default_rng(14).poisson(20 + 10 * np.sin(np.arange(365) / 58))


@task(
    "inventory",
    1.0,
    report=noisy(2.0),
    reorder=integers(0, 1000),
    upto=integers(1, 3000),
    safety=uniform(0, 10),
)
@task(
    "inventory-window",
    4.0,
    reorder=uniform(0, 5000),
    upto=uniform(1, 5000),
    safety=uniform(0, 5),
    window=stepped(1, 200),
)
def _inventory(penalty: float, reorder: float, upto: float, safety: float, window: float = 30.0) -> float:
    """Return the daily cost of keeping, ordering and lacking goods."""
    if upto <= reorder:
        raise ValueError("orders would be negative")
    demand, stock, coming, cost = _demand().tolist(), 100.0, [0.0] * 7, 0.0
    for day, wanted in enumerate(demand):
        stock += coming.pop(0)
        lacking = max(wanted - stock, 0.0)
        stock = max(stock - wanted, 0.0)
        recent = demand[max(day - int(window), 0) : day + 1]
        level = reorder + safety * sum(recent) / len(recent)
        order = max(upto - stock - sum(coming), 0.0) if stock + sum(coming) < level else 0.0
        coming.append(order)
        cost += 0.05 * stock + 10 * penalty * lacking + (40 if order else 0)
    return cost / len(demand)


@task("annealing-tour", report=noisy(0.03), start=uniform(1e-4, 100), cooling=uniform(0.5, 1), steps=pick(200,
      400, 600),
      move=pick("swap", "reverse", "insert"), restarts=integers(1, 6))  # fmt: skip
def _tour(start: float, cooling: float, steps: int, move: str, restarts: int) -> float:
    """Return the length of the tour that simulated annealing finds."""
    rng = np.random.default_rng(15)
    places = rng.random((20, 2))
    apart = np.hypot(*(places[:, None] - places[None]).T)
    draws = rng.random((steps, 3)).tolist()
    tour, best, heat = list(range(20)), math.inf, start
    length = float(apart[tour, np.roll(tour, 1)].sum())
    for step, (first, second, luck) in enumerate(draws):
        if step % max(steps // restarts, 1) == 0:
            heat = start
        i, j = sorted((int(20 * first), int(20 * second)))
        other = tour.copy()
        if move == "swap":
            other[i], other[j] = other[j], other[i]
        elif move == "reverse":
            other[i:j] = other[i:j][::-1]
        else:
            other.insert(j, other.pop(i))
        change = float(apart[other, np.roll(other, 1)].sum()) - length
        if change < 0 or luck < math.exp(-change / max(heat, 1e-9)):
            tour, length = other, length + change
            best = min(best, length)
        heat *= cooling ** (10 / steps * 30)
    return best + 0.0005 * steps * 0.1


_PARTICLES = {
    "particles": stepped(2, 60),
    "inertia": uniform(0, 2),
    "own": uniform(0, 5),
    "social": uniform(0, 5),
}


@task("swarm", report=noisy(0.1), **_PARTICLES, limit=uniform(0.001, 10))
@task(
    "swarm-useless",
    report=noisy(0.02),
    **_PARTICLES,
    topology=pick("all", "ring"),
    **{f"unused{i}": uniform(0, 1) for i in range(5)},
)
def _swarm(particles: float, inertia: float, own: float, social: float, limit: float = 1.0, topology: str = "all",
           **unused: float) -> float:  # fmt: skip
    """Return the logarithm of what a particle swarm reaches with 600 evaluations."""
    count, rng = int(particles), np.random.default_rng(16)
    assert all(value <= 1 for value in unused.values())
    places, speeds = rng.uniform(-5, 5, (count, 6)), np.zeros((count, 6))
    bests, values = places.copy(), np.full(count, np.inf)
    for _ in range(600 // count):
        found = (places**2).sum(axis=1) + 3 * (1 - np.cos(3 * places)).sum(axis=1)
        better = found < values
        bests[better], values[better] = places[better], found[better]
        leader = bests[values.argmin()]
        if topology == "ring":
            left = np.roll(values, 1) < values
            leader = np.where(left[:, None], np.roll(bests, 1, axis=0), bests)
        draws = rng.random((2, count, 6))
        speeds = inertia * speeds + own * draws[0] * (bests - places) + social * draws[1] * (leader - places)
        speeds = np.clip(speeds, -limit, limit)
        places = places + speeds
    return math.log10(values.min() + 1e-6)


@task("genetic", report=noisy(0.5), population=stepped(2, 100), mutation=uniform(0, 1), crossover=uniform(0, 1),
      tournament=integers(1, 20), elite=integers(0, 30))  # fmt: skip
def _genetic(population: float, mutation: float, crossover: float, tournament: int, elite: int) -> float:
    """Return minus the value of the knapsack that a genetic algorithm packs."""
    count, rng = int(population), np.random.default_rng(17)
    if elite >= count:
        raise ValueError("nothing is left to breed")
    values, weights = rng.integers(5, 60, (2, 40))
    pool, best = rng.random((count, 40)) < 0.2, 0.0
    for _ in range(1500 // count):
        fitness = np.where(pool @ weights <= 400, pool @ values, 0) - 0.01 * (pool @ weights)
        best = max(best, float(fitness.max()))
        rivals = rng.integers(count, size=(2, count, tournament))
        one, two = (pool[np.take_along_axis(r, fitness[r].argmax(axis=1)[:, None], 1)[:, 0]] for r in rivals)
        mixed = np.where((rng.random((count, 40)) < 0.5) & (rng.random((count, 1)) < crossover), two, one)
        mixed ^= rng.random(mixed.shape) < mutation
        mixed[:elite] = pool[np.argsort(-fitness)[:elite]]
        pool = mixed
    return -best


def _epidemic(beta: float, gamma: float, initial: float, delay: float = 0.0) -> np.ndarray:
    sick, well, seen = initial, 1 - initial, []
    for day in range(120):
        new = beta * sick * well if day >= delay else 0.0
        sick, well = sick + new - gamma * sick, well - new
        seen.append(sick)
    return np.array(seen)


@task("epidemic", beta=uniform(0, 10), gamma=uniform(0, 1), initial=uniform(0, 1))
@task("epidemic-log", beta=log(1e-4, 10), gamma=log(1e-4, 1), initial=log(1e-8, 1), delay=stepped(0, 100))
def _epidemic_fit(**rates: float) -> float:
    """Return how far a model of an epidemic is from what was counted, on a scale of decades."""
    seen = _epidemic(0.32, 0.11, 1e-3, 5) * np.exp(0.05 * np.random.default_rng(18).normal(size=120))
    return float(1e4 * np.mean((_epidemic(**rates) - seen) ** 2))


@task("predators", a=uniform(0, 10), b=uniform(0, 1), c=uniform(0, 10), d=uniform(0, 1))
@task("kinetics", vmax=uniform(0, 1e4), km=uniform(0, 1e4), hill=uniform(0.1, 10), inhibition=uniform(0, 1e3))
def _curve(**rates: float) -> float:
    """Return the squared error of a curve that often explodes."""
    if "vmax" in rates:
        doses = np.geomspace(0.1, 1000, 30)

        def response(vmax: float, km: float, hill: float, inhibition: float) -> np.ndarray:
            return vmax * doses**hill / (km**hill + doses**hill) / (1 + doses * inhibition / 1e6)

        return float(np.mean((response(**rates) - response(120, 35, 1.4, 300)) ** 2))

    def populations(a: float, b: float, c: float, d: float) -> np.ndarray:
        prey, others, seen = 10.0, 5.0, []
        for _ in range(300):
            prey, others = prey + 0.03 * (a - b * others) * prey, others + 0.03 * (d * prey - c) * others
            seen.append((prey, others))
        return np.array(seen)

    return float(np.mean((populations(**rates) - populations(1.1, 0.1, 0.8, 0.04)) ** 2))


@task("spring", wire=uniform(0.01, 2), coil=uniform(0.1, 20), turns=stepped(1, 50))
def _spring(wire: float, coil: float, turns: float) -> float:
    """Return the weight of a spring; one that breaks, or does not fit, is no design."""
    index = coil / wire
    stress = 2.55 * coil * 1000 / wire**3 * (1 + 0.6 / index)
    stiffness = 1.15e7 * wire**4 / (8 * coil**3 * turns)
    if index < 1.5 or stress > 2e5 or wire * turns > 12 or not 20 < stiffness < 5e4:
        raise ValueError("not a spring")
    return wire**2 * coil * (turns + 2)


@task("antenna", **{f"place{i}": uniform(0, 5) for i in range(6)}, taper=uniform(0, 5))
def _antenna(taper: float, **places: float) -> float:
    """Return the largest side lobe of a symmetric array, in decibels."""
    x = np.sort(list(places.values()))
    angles = np.linspace(0, np.pi / 2, 400)
    weights = np.exp(-taper * (x / 5) ** 2)
    pattern = (
        np.abs((weights[:, None] * np.cos(2 * np.pi * x[:, None] * np.sin(angles))).sum(axis=0))
        / weights.sum()
    )
    return float(20 * np.log10(pattern[angles > 0.2].max() + 1e-6))


@task(
    "throw",
    report=samples(40),
    angle=uniform(-90, 180),
    speed=uniform(0, 1000),
    height=uniform(0, 3),
    spin=uniform(-10, 10),
)
def _throw(angle: float, speed: float, height: float, spin: float) -> float:
    """Return the share of throws that miss a ring."""
    rng = np.random.default_rng(19)
    turned, pushed = np.radians(angle + 2 * rng.normal(size=400)), speed * (1 + 0.02 * rng.normal(size=400))
    reach = (
        pushed
        * np.cos(turned)
        * (pushed * np.sin(turned) + np.sqrt(np.maximum((pushed * np.sin(turned)) ** 2 + 20 * height, 0)))
    )
    return float(1 - np.mean(np.exp(-(((reach / 9.8 + 0.3 * spin - 12) / 4) ** 2))))
