"""What a search for better settings tries, as far as that can be told without servers."""

from pathlib import Path

from builders import SimulatedArm, simulated_run
from webdyno.definitions import Catalogue
from webdyno.model.experiment import Arm
from webdyno.model.knob import KnobValue
from webdyno.model.measure import Measure
from webdyno.run.tuning import DEFAULT, Contender


def first_tried(folder: Path, measure: Measure) -> list[dict[str, KnobValue]]:
    """The settings of a search's first round."""
    made = simulated_run(
        {it: SimulatedArm() for it in ("nginx", "apache")}, blocks=0
    ).head.experiment
    asked = made.model_copy(update={"measure": measure})
    side = Contender("nginx", Arm(stack="nginx"), asked, Catalogue.load(), folder)
    first = side.next_round()
    assert first
    return [arm.knobs for name, arm in first.arms.items() if name != DEFAULT]


def test_each_search_begins_elsewhere_unless_its_seed_is_set(tmp_path: Path) -> None:
    drawn = [first_tried(tmp_path, Measure()) for _ in range(3)]
    assert drawn[0] != drawn[1] or drawn[1] != drawn[2]
    large = Measure(seed=2**62)
    assert first_tried(tmp_path, large) == first_tried(tmp_path, large)
    assert first_tried(tmp_path, large) != first_tried(tmp_path, Measure(seed=1))
