"""In which order arms are loaded inside a block.

Two arms go ABBA: a drift that is linear over the block then weighs equally on both. More arms take
turns in random order, every second round reversed, which balances the same way. Which arm begins is
drawn for each block (randomised multiple interleaved trials: Abedi & Brecht, ICPE 2017).
"""

from collections.abc import Sequence
from random import Random


def block_order(arms: Sequence[str], slots_per_arm: int, rng: Random) -> list[str]:
    """Give the arm of each slot of a block.

    Each arm gets `slots_per_arm` slots (an even number), and the mean position of its slots within
    the block is the same for all arms.
    """
    if slots_per_arm % 2:
        raise ValueError("slots_per_arm must be even for a balanced order")
    order: list[str] = []
    for _ in range(slots_per_arm // 2):
        there = rng.sample(list(arms), len(arms))
        order += there + there[::-1]
    return order


def round_rng(seed: int, turn: int) -> Random:
    """Give the random source of the order in which points take turns."""
    return Random(f"{seed}/round {turn}")


def block_rng(seed: int, point: int, block: int) -> Random:
    """Give the random source of one block, so that a resumed run draws what it would have drawn."""
    return Random(f"{seed}/{point}/{block}")
