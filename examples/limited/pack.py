"""Compresses a text: a larger dictionary finds more repetitions and takes more memory, which is limited."""

import lzma
import random

import pitchpipe

WORDS = ["pitch", "pipe", "tuner", "trial", "limit", "front", "knee", "volume"]


def main() -> None:
    """Compress with the given level and dictionary, and report the size and the memory."""
    parameters = {"level": 6, "window": 20} | (pitchpipe.get_next_parameter() or {})
    level, dictionary = int(parameters["level"]), 2 ** int(parameters["window"])
    filters = [{"id": lzma.FILTER_LZMA2, "preset": level, "dict_size": dictionary}]
    size = len(lzma.compress(text(), format=lzma.FORMAT_RAW, filters=filters))
    bytes_per_entry = 7.5 if level < 4 else 11.5  # low levels search with hash chains, the others with trees
    pitchpipe.report_final_result({"size_kb": size / 1e3, "memory_mb": bytes_per_entry * dictionary / 1e6})


def text() -> bytes:
    """Return a text whose second half repeats the first, far away."""
    chance = random.Random(1)
    half = " ".join(chance.choice(WORDS) + str(chance.randrange(1000)) for _ in range(20_000))
    return (half + half).encode()


if __name__ == "__main__":
    main()
