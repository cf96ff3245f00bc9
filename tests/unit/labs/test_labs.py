"""lab.toml is checked when it is read; a lab makes commands, folders and copies from it."""

from __future__ import annotations

import json
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from example_lab import changed, example, write_programs

from helpers.labs import lab as labs
from helpers.labs.lab import Lab, LabError, RunFolder, all_labs, find_lab, read_lab
from helpers.labs.toml_file import TomlError


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_programs(tmp_path)


@pytest.fixture
def lab(folder: Path) -> Lab:
    return example(folder)


BAD = [
    ("title", None, "lab.toml: Object missing required field `title`"),
    ("title", 3, "lab.toml: title: Expected `str`, got `int`"),
    ("title", "", "lab.toml: title: Expected `str` of length >= 1"),
    ("minutes", 0, "lab.toml: minutes: Expected `int` >= 1"),
    ("minutes", True, "lab.toml: minutes: Expected `int`, got `bool`"),
    ("ranks", "two", "lab.toml: ranks: Expected `int`, got `str`"),
    ("colour", "red", "lab.toml: Object contains unknown field `colour`"),
    ("hints", [], "lab.toml: hints: Expected `array` of length >= 1"),
    ("hints", ["a", 1], "lab.toml: hints[1]: Expected `str`, got `int`"),
    ("environment", {"A": 1}, "lab.toml: environment.A: Expected `str`, got `int`"),
    ("programs", {}, "lab.toml: programs: Expected `object` of length >= 1"),
    ("programs", "all", "lab.toml: programs: Expected `object`, got `str`"),
    ("memory_mb", -1, "lab.toml: memory_mb: Expected `int` >= 1"),
    ("notes_on", {"tpu": "x"}, 'lab.toml: notes_on: "tpu" is not one of: cpu, one-gpu, multi-gpu'),
    ("programs/fixed/colour", "red", "programs.fixed: Object contains unknown field `colour`"),
    ("programs/fixed/knobs", ["speed"], 'programs.fixed.knobs: "speed" is not one of: launcher, '),
    ("programs/fixed/needs", ["luck"], 'programs.fixed.needs[0]: "luck" is not one of: one-gpu, two'),
    ("knobs/mode/values/lazy/needs", ["luck"], 'values.lazy.needs[0]: "luck" is not one of: one-gpu'),
    ("refused/0/knobs", {"speed": "9"}, 'refused[0].knobs: "speed" is not one of: launcher, '),
    ("refused/0/why", None, "refused[0]: Object missing required field `why`"),
    ("expected/3/knobs", {"mode": "lazy"}, 'expected[3].knobs: "mode" is not one of: none'),
    ("programs/broken/file", "lost.py", "lab.toml: programs.broken.file: there is no lost.py"),
    ("knobs/mode/values/lazy/at_limit", "stop", 'lazy.at_limit: "stop" is not one of: kill, stall'),
    ("knobs/mode/values/lazy/memory_limit_mb", 0, "lazy.memory_limit_mb: Expected `int` >= 1"),
    ("expected/0/culprits", "chance", 'expected[0].culprits: "chance" is not one of: by chance'),
    ("programs/mine", {"file": "fixed.py", "text": "x"}, "turns.mine: there is a program of this name"),
    ("turns", {}, 'turns: "mine" is not one of: none'),
    ("knobs/method/default", "thread", 'knobs.method: default: "thread" is not one of: spawn, fork'),
    ("knobs/method/colour", "red", "knobs.method: Object contains unknown field `colour`"),
    ("knobs/mode/values/lazy/colour", "red", "knobs.mode.values.lazy: Object contains unknown field"),
    ("knobs/program", {"label": "x", "default": "best", "values": {"a": {}}}, "cannot be the name of"),
    ("expected/0/outcome", "stuck", 'expected[0].outcome: "stuck" is not one of: hang, error'),
    ("expected/0/cause", "bad luck", 'expected[0].cause: "bad luck" is not one of: address-in-use'),
    ("expected/0/program", "mine", 'expected[0].program: "mine" is not one of: broken, fixed'),
    ("expected/0/culprits", ["1"], "expected[0].culprits[0]: Expected `int`, got `str`"),
    ("expected/0/knobs", {"speed": "9"}, 'expected[0].knobs: "speed" is not one of: launcher, '),
    ("expected/0/knobs", {"method": "x"}, 'expected[0].knobs.method: "x" is not one of: spawn'),
    ("expected/0/knobs", {"method": 5}, "expected[0].knobs.method: Expected `str | array`, got `int`"),
    ("expected/0/knobs", {}, "expected: 2 reports are expected of broken with launcher python"),
    ("expected/1/program", "fixed", "expected: no report is expected of broken with launcher"),
    ("results/file", "result.json", "results: {rank} is missing in `file`"),
    ("predict/answers", [], "predict.answers: Expected `array` of length >= 1"),
    ("quiz/0/right", "maybe", 'quiz[0]: right: "maybe" is not one of: so, not so'),
    ("quiz/0/wrong", ["a", "b"], "quiz[0]: `wrong` must hold a sentence on each answer that is not"),
    ("quiz/1/most", 1, "quiz[1]: `most` is below `least`"),
    ("quiz/1/near", [{"value": 2, "said": "So."}], "quiz[1]: near: 2 is a right answer"),
    ("quiz/1/kind", "guess", "quiz[1].kind"),
    ("claims/0/verdict", "true", 'claims[0].verdict: "true" is not one of: confirmed here'),
    ("turns/mine/copy_of", "best", 'turns.mine.copy_of: "best" is not one of: broken, fixed'),
    ("turns/mine/solution", "best", 'turns.mine.solution: "best" is not one of: broken, fixed'),
    (
        "turns/mine/conditions",
        [{"of": "workers", "what": "w", "otherwise": "o", "command": "c", "knobs": {"mode": "x"}}],
        'turns.mine.conditions[0].knobs.mode: "x" is not one of: plain, lazy',
    ),
    (
        "turns/mine/conditions",
        [{"of": "workers", "what": "w", "otherwise": "o", "command": "c", "knobs": 5}],
        "turns.mine.conditions[0].knobs: Expected `object`, got `int`",
    ),
    ("turns/mine/conditions", [{"of": 5}], "turns.mine.conditions[0].of: Expected `str`"),
]


@pytest.mark.parametrize(("path", "value", "said"), BAD, ids=[f"{p}={v}" for p, v, _ in BAD])
def test_a_fault_is_one_sentence_with_file_and_key(
    folder: Path, path: str, value: Any, said: str
) -> None:
    with pytest.raises((TomlError, LabError)) as caught:
        example(folder, changed(path, value))
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"title = ", "is not valid TOML"), (b"\xff", "cannot be read"), (None, "cannot be read")],
)
def test_a_file_that_is_no_lab(tmp_path: Path, content: bytes | None, said: str) -> None:
    file = tmp_path / "lab.toml"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(LabError, match=said):
        read_lab(tmp_path)


@pytest.mark.parametrize(
    ("knobs", "command"),
    [
        ({}, "python broken.py --method spawn"),
        ({"method": "fork"}, "python broken.py --method fork"),
        ({"launcher": "torchrun"}, "torchrun --standalone broken.py --method spawn"),
        ({"mode": "lazy"}, "python broken.py --method spawn -l"),
    ],
)
def test_knobs_become_the_command(lab: Lab, knobs: dict[str, str], command: str) -> None:
    assert lab.command("broken", knobs) == command.split()


def test_knobs_that_do_not_apply_are_left_out(lab: Lab) -> None:
    shown = {"method": "fork", "mode": "lazy"}
    assert lab.applying("alone", shown) == {}
    assert lab.applying("broken", shown) == shown
    assert lab.command("alone", {}) == ["python", "fixed.py"]
    assert len(list(lab.file.combinations("alone"))) == 1
    assert len(list(lab.file.combinations("broken"))) == 2 * 2 * 2 * 3 - 4


def test_knobs_and_the_lab_become_the_environment(lab: Lab) -> None:
    plain = lab.environment("broken", Path("/run"), {})
    assert plain == {"CACHE": "/run/cache", "RESULTS_DIR": "/run"}
    assert lab.environment("broken", Path("/run"), {"mode": "lazy"}) == plain | {"LAZY": "1"}


@pytest.mark.parametrize(
    ("use", "said"),
    [
        (lambda lab: lab.command("best", {}), 'no program "best", only broken, fixed, alone, mine'),
        (lambda lab: lab.command("broken", {"x": "1"}), 'no setting "x", only launcher, method, mode'),
        (
            lambda lab: lab.session("alone", mode="lazy"),
            '"mode" does not apply to alone, which has none',
        ),
        (lambda lab: lab.applying("best", {}), 'no program "best"'),
        (
            lambda lab: lab.command("fixed", {"method": "fork", "hardware": "multi-gpu"}),
            "method fork, hardware multi-gpu do not go together: CUDA does not fork",
        ),
        (lambda lab: lab.session("broken", method="x"), '"x" is no value of method, only spawn'),
        (lambda lab: lab.expected("mine", {}), "expects no report of mine"),
    ],
)
def test_what_a_lab_does_not_have(lab: Lab, use: Callable[[Lab], object], said: str) -> None:
    with pytest.raises(LabError, match=said):
        use(lab)


def test_expected_reports(lab: Lab) -> None:
    assert lab.expected("broken", {}).exit_code == 2
    assert lab.expected("broken", {"method": "fork", "launcher": "torchrun"}).exit_code == 0
    assert lab.expected("fixed", {}).cause == "none"


def test_a_session_runs_this_python_in_the_lab_with_a_folder_of_its_own(lab: Lab) -> None:
    session = lab.session("broken")
    assert session.command[0] == sys.executable
    assert session.cwd == lab.folder.resolve()
    assert session.env is not None
    results = Path(session.env["RESULTS_DIR"])
    assert stat.S_IMODE(results.stat().st_mode) == 0o700
    del session
    assert not results.exists()


def test_a_run_folder_goes_with_its_owner() -> None:
    with RunFolder() as path:
        (path / "result-rank0.json").write_text("{}")
    assert not path.exists()
    folder = RunFolder()
    path = folder.path
    folder.remove()
    folder.remove()
    assert not path.exists()


def test_results_are_read_and_what_is_cut_off_counts_as_empty(lab: Lab, tmp_path: Path) -> None:
    (tmp_path / "result-rank1.json").write_text('{"rank": 1')
    (tmp_path / "result-rank0.json").write_text(json.dumps({"rank": 0}))
    (tmp_path / "run.json").write_text("{}")
    assert lab.results(tmp_path) == [{"rank": 0}, {}]


def test_the_learner_s_copy_is_made_once(lab: Lab) -> None:
    mine = lab.my_copy()
    assert mine.read_text() == "print('broken')\n"
    mine.write_text("print('mended')\n")
    assert lab.my_copy().read_text() == "print('mended')\n"


def test_starting_over_keeps_what_the_learner_had(lab: Lab) -> None:
    for number, text in enumerate(("first", "second"), start=1):
        lab.my_copy().write_text(text)
        backup = lab.start_over()
        assert (backup.name, backup.read_text()) == (f"{lab.copy().stem}.{number}.py", text)
        assert lab.copy().read_text() == "print('broken')\n"


def test_a_prediction_is_scored_by_the_report(lab: Lab) -> None:
    assert lab.predict.truth({"culprits": [1]}) == "rank 1"
    assert lab.predict.truth({"culprits": [0, 1]}) is None


def test_labs_are_found_by_name_and_number() -> None:
    names = [lab.name for lab in all_labs()]
    assert names == sorted(names)
    assert find_lab("05").name == find_lab("5").name == find_lab("05_spawn_ports").name
    with pytest.raises(LabError, match='there is no lab "99", only'):
        find_lab("99")


def test_where_the_labs_are_can_be_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(labs.NOTEBOOKS, str(tmp_path))
    assert all_labs() == []
    monkeypatch.setenv(labs.NOTEBOOKS, str(tmp_path / "lost"))
    with pytest.raises(LabError, match=f"there are no labs at .*; set {labs.NOTEBOOKS}"):
        all_labs()


@pytest.mark.parametrize("lab", all_labs(), ids=lambda lab: lab.name)
def test_every_lab_of_the_guide_is_whole(lab: Lab) -> None:
    assert len(lab.hints) == 3
    assert (lab.folder / f"{lab.name}.ipynb").is_file()
    truths = {str(list(one.culprits)) for one in lab.file.expected if one.program == "broken"}
    if lab.predict.field == "culprits":
        assert truths & {str(answer.value) for answer in lab.predict.answers}
    for settings in lab.file.combinations("fixed"):
        assert lab.expected("fixed", settings).outcome == "ok"
