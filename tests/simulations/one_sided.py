"""Simulated runs that are asked a one-sided question after every round.

Run as a program it prints the table of docs/validation/coverage.md:

    uv run python tests/simulations/one_sided.py [RUNS]
"""

import sys
from dataclasses import dataclass
from math import log1p

import numpy as np

from webdyno.statistics.verdict import OneSided, ask_by_sampling


@dataclass(frozen=True)
class Ended:
    """Shares of the answers, and how many rounds they took on average."""

    yes: float
    no: float
    rounds: float


def runs(mean: float, sd: float, question: OneSided, count: int, seed: int = 0) -> Ended:
    """Make runs whose log ratios have this mean and standard deviation; stop when answered."""
    rng = np.random.default_rng(seed)
    answers: list[str] = []
    rounds = 0
    for _ in range(count):
        d = rng.normal(mean, sd, question.most_rounds)
        for n in range(question.fewest_rounds, question.most_rounds + 1):
            found = ask_by_sampling(d[:n], question)
            if found is not None and found.answer != "inconclusive":
                break
        assert found is not None
        answers.append(found.answer)
        rounds += n
    return Ended(answers.count("yes") / count, answers.count("no") / count, rounds / count)


def main() -> None:
    """Print the table."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 5_000
    print(f"{count} runs a row, ratios of rounds with 3% noise")  # noqa: T201
    print("tolerance  true gain  planned rounds      yes       no  mean rounds")  # noqa: T201
    for tolerance in (0.0, 0.05):
        for gain in (-0.05, -0.02, 0.0, 0.02, 0.05):
            for most in (10, 30):
                question = OneSided(tolerance, "higher", most_rounds=most)
                mean = log1p(gain) if gain > 0 else -log1p(-gain)
                ended = runs(mean, 0.03, question, count)
                print(  # noqa: T201
                    f"{tolerance:9.0%}  {gain:9.0%}  {most:14}  {ended.yes:7.1%}  {ended.no:7.1%}"
                    f"  {ended.rounds:11.1f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
