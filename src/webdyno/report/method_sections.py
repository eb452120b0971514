"""The sections of a run's page that say how its figures were made, and what makes them again."""

from collections.abc import Iterator
from pathlib import Path

from webdyno.model import format as text
from webdyno.model.judgement import Verdict
from webdyno.model.run import PAGE_FILE, SWEEPS, RunHead, profile_run
from webdyno.report import document as doc
from webdyno.report.around_rounds import Preflight
from webdyno.report.conditions import machine_facts
from webdyno.report.details import configuration_differences
from webdyno.report.ratio_tables import by_variant_table
from webdyno.report.view import RunView
from webdyno.report.words import verdict_cell


def preflight_section(found: Preflight) -> doc.Section:
    """Say what the variants answered before the load: of what differs what each of them did."""
    groups: dict[str, list[tuple[doc.Cell | str, dict[str, str]]]] = {}
    for line in found.shown:
        mark = verdict_cell(Verdict.INVALID, f"{line.what}: wrong")
        what = mark if line.wrong else line.what
        groups.setdefault(line.about, []).append((what, line.by_variant))
    alike = "" if groups else " Nothing that matters differs."
    blocks: list[doc.Block] = [
        doc.Paragraph(f"Before any load, the same requests went to every variant.{alike}")
    ]
    if groups:
        wrong = any(line.wrong for line in found.shown)
        table = by_variant_table(found.variants, groups, "preflight")
        blocks.append(
            doc.Folded(text.count(len(found.shown), "difference"), [table], is_open=wrong)
        )
    if found.alike:
        blocks.append(
            doc.Paragraph(f"The same on every variant: {', '.join(found.alike)}.", look="soft")
        )
    return doc.Section("Pre-flight check", blocks)


def sweeps_around(folder: Path) -> Iterator[doc.Section]:
    """Give the pages of the sweeps beside a search, by what they show; those that are there."""
    pages = {said: f"{name}/{PAGE_FILE}" for name, said in SWEEPS.items()}
    links = [
        (text.upper_first(said), page) for said, page in pages.items() if (folder / page).exists()
    ]
    if links:
        yield doc.Section("Sweeps around the capacities", [doc.Links(links)])


def profiles_of(folder: Path, view: RunView) -> Iterator[doc.Section]:
    """Give the pages with flame graphs of a gate's endpoints, those that are there."""
    links = [
        (point.label or view.head.experiment.title, page)
        for point in view.points
        if (page := profile_run(folder, point.number) / PAGE_FILE).exists()
    ]
    if links:
        beside = [(said, str(page.relative_to(folder))) for said, page in links]
        yield doc.Section("Flame graphs of both revisions", [doc.Links(beside)])


def configuration_section(folder: Path, view: RunView) -> Iterator[doc.Section]:
    """Give the lines in which configurations differ, folded where there are several files."""
    if found := configuration_differences(folder, view):
        only = len(found) == 1
        blocks = [
            doc.Folded(
                f"{difference.variant} against {difference.other}: {difference.file}",
                [doc.Code(difference.diff)],
                is_open=only,
            )
            for difference in found
        ]
        yield doc.Section("How the configurations differ", blocks)


def environment_section(head: RunHead) -> doc.Section:
    """Give machine and versions, and the kernel's settings folded."""
    sysctls = [(name, str(value)) for name, value in head.machine.sysctls.items()]
    settings = [doc.Folded("Settings of the kernel", [doc.FactList(sysctls)])] if sysctls else []
    versions = [
        (variant, ", ".join(f"{service} {version}" for service, version in services.items()))
        for variant, services in head.versions.items()
    ]
    return doc.Section(
        "Environment",
        [
            doc.FactList(machine_facts(head.machine)),
            doc.Heading("Versions"),
            doc.FactList([*versions, ("webdyno", head.webdyno_version)]),
            *settings,
        ],
    )


def repeat_section(folder: Path, head: RunHead) -> doc.Section:
    """Give the command that measures it again, and the whole experiment folded."""
    how: list[doc.Block] = [
        doc.Paragraph(
            "The run's folder holds all that it takes: the experiment, and the services, stacks "
            f"and sites as they were. With webdyno {head.webdyno_version}:"
        ),
        doc.Code(head.repeat_command(folder)),
    ]
    if elsewhere := head.command_elsewhere:
        how += [doc.Paragraph("Without that folder, on any machine:"), doc.Code(elsewhere)]
    whole = "The experiment as it was run, every default and the seed written out"
    folded = doc.Folded(whole, [doc.Code(head.experiment.toml())])
    return doc.Section("How to repeat it", [*how, folded], anchor="Reproduce")
