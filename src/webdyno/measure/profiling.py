"""An experiment whose servers' CPUs are sampled."""

from webdyno.config import Catalogue
from webdyno.core.experiment import Experiment
from webdyno.core.metrics import CPU_TIME, INSTRUCTIONS
from webdyno.core.setting import SettingValue
from webdyno.core.variant import Variant


def sampled_experiment(experiment: Experiment, catalogue: Catalogue) -> Experiment:
    """Give the experiment with CPU profiling on, and with symbol names where servers give them."""
    variants = {name: _with_names(name, experiment, catalogue) for name in experiment.variants}
    measure = experiment.measure
    if measure.decide_on == INSTRUCTIONS:  # perf has the counters
        measure = measure.replace(decide_on=CPU_TIME)
    return experiment.replace(profile=True, variants=variants, measure=measure)


def _with_names(variant: str, experiment: Experiment, catalogue: Catalogue) -> Variant:
    here = experiment.variants[variant]
    stack, site = catalogue.stack(here.stack), catalogue.site(experiment.site_of(variant))
    named: dict[str, SettingValue] = {
        name: setting.when_sampled
        for name, (setting, _) in stack.with_services(site.services).exposed_settings().items()
        if setting.when_sampled is not None
    }
    return here.with_settings(named)
