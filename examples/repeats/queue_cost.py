"""Simulates one day of a post office: counters cost wages, hasty clerks make mistakes, waiting customers leave."""

import heapq
import random

import pitchpipe

CUSTOMERS = 300


def main() -> None:
    """Simulate the day that the seed determines, and report what it costs."""
    parameters = {"counters": 4, "per_visit": 2.0} | (pitchpipe.get_next_parameter() or {})
    chance = random.Random(pitchpipe.get_seed())
    pitchpipe.report_final_result(cost(int(parameters["counters"]), float(parameters["per_visit"]), chance))


def cost(counters: int, per_visit: float, chance: random.Random) -> float:
    """Return the wages, and the cost of mistakes and of minutes waited."""
    free = [0.0] * counters  # when each counter is free again
    now = waited = mistakes = 0.0
    for _ in range(CUSTOMERS):
        now += chance.expovariate(1.0)
        begin = max(now, heapq.heappop(free))
        heapq.heappush(free, begin + chance.expovariate(1 / per_visit))
        waited += begin - now
        mistakes += chance.random() < 0.5 / (1 + per_visit**2)
    return 40.0 * counters + 0.2 * waited + 3.0 * mistakes


if __name__ == "__main__":
    main()
