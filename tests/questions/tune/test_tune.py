"""What a search for better settings tries, as far as that can be known without servers."""

from pathlib import Path

from builders import SimulatedVariant, simulated_run
from webdyno.config import Catalogue
from webdyno.core.measure import Measure
from webdyno.core.setting import SettingValue
from webdyno.core.variant import Variant
from webdyno.questions.tune.tune import DEFAULT, Contender


def first_tried(folder: Path, measure: Measure) -> list[dict[str, SettingValue]]:
    """The settings of a search's first batch."""
    made = simulated_run(
        {it: SimulatedVariant() for it in ("nginx", "apache")}, rounds=0
    ).head.experiment
    asked = made.model_copy(update={"measure": measure})
    contender = Contender("nginx", Variant(stack="nginx"), asked, Catalogue.load(), folder)
    first = contender.next_batch()
    assert first
    return [variant.settings for name, variant in first.variants.items() if name != DEFAULT]


def test_each_search_begins_elsewhere_unless_its_seed_is_set(tmp_path: Path) -> None:
    drawn = [first_tried(tmp_path, Measure()) for _ in range(3)]
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]
    large = Measure(seed=2**62)
    assert first_tried(tmp_path, large) == first_tried(tmp_path, large)
    assert first_tried(tmp_path, large) != first_tried(tmp_path, Measure(seed=1))
