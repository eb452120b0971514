"""A run measured again while the servers' CPUs are sampled."""

from webdyno.definitions import Catalogue
from webdyno.model.experiment import Arm, Experiment
from webdyno.model.knob import KnobValue


def asked_samples(experiment: Experiment, catalogue: Catalogue) -> Experiment:
    """Give the experiment with samples, and with the knobs that let these have names."""
    arms = {name: _with_names(name, experiment, catalogue) for name in experiment.arms}
    return experiment.replace(profile=True, arms=arms)


def _with_names(arm: str, experiment: Experiment, catalogue: Catalogue) -> Arm:
    here = experiment.arms[arm]
    stack, site = catalogue.stack(here.stack), catalogue.site(experiment.site_of(arm))
    named: dict[str, KnobValue] = {
        name: knob.when_sampled
        for name, (knob, _) in stack.with_services(site.services).exposed_knobs().items()
        if knob.when_sampled is not None
    }
    return here.with_knobs(named)
