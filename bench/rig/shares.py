"""Shares of what was counted, as tables have them."""

from scipy.special import betaincinv


def share_words(seen: int, how_many: int) -> str:
    """Give a share with its 95% CI (Clopper and Pearson, Biometrika 1934): `2.5% (0.1–13.2)`."""
    low = betaincinv(seen, how_many - seen + 1, 0.025) if seen else 0.0
    high = betaincinv(seen + 1, how_many - seen, 0.975) if seen < how_many else 1.0
    return f"{100 * seen / how_many:.3g}% ({100 * low:.1f}–{100 * high:.1f})"
