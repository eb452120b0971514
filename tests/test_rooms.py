"""Where a file stands says what it is about: rooms, questions and tests have one name each."""

from pathlib import Path

from sources import SOURCE

TESTS = Path(__file__).parent
OF_ALL_ROOMS = {"bench", "e2e", "fuzz", "reference", "simulations"}
"""Folders of tests that are about webdyno as a whole, or about what it says on the long run."""
EACH_QUESTION_HAS = {"settings.py", "decide.py"}


def folders_in(place: Path) -> set[str]:
    return {it.name for it in place.iterdir() if it.is_dir() and it.name[0] not in "_."}


def test_tests_stand_in_the_room_of_what_they_test() -> None:
    assert folders_in(TESTS) - OF_ALL_ROOMS <= folders_in(SOURCE)
    assert folders_in(TESTS / "questions") <= folders_in(SOURCE / "questions")


def test_each_question_has_its_settings_and_its_rule() -> None:
    for question in folders_in(SOURCE / "questions"):
        files = {it.name for it in (SOURCE / "questions" / question).iterdir()}
        assert files >= EACH_QUESTION_HAS, question
