"""The plain values of a frame: what is read, what is left out, and that nothing of the job's runs."""

from __future__ import annotations

import contextlib
import sys
import threading
import weakref
from types import FrameType
from typing import Any, ClassVar

import pytest

from helpers.beacon import exits, scalars, stacks

limit = 7


class Config:
    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)


class Hostile:
    """Whatever is asked of it is noted."""

    asked: ClassVar[list[str]] = []

    def __init__(self) -> None:
        self.step = 3

    def __getattr__(self, name: str) -> Any:
        self.asked.append(name)
        raise AttributeError(name)

    def __repr__(self) -> str:
        self.asked.append("repr")
        return "hostile"

    def __eq__(self, other: object) -> bool:
        self.asked.append("eq")
        return True

    __hash__ = None  # type: ignore[assignment]

    @property
    def resume(self) -> bool:
        self.asked.append("resume")
        return True


class Slotted:
    __slots__ = ("step",)

    def __init__(self) -> None:
        self.step = 4


class Number(int):
    def __repr__(self) -> str:
        raise AssertionError("it runs code of the job's")


def here() -> FrameType:
    return sys._getframe(1)


def test_plain_values_are_told() -> None:
    step, loss, due, best, mode = 3, 2.5, True, None, "train"
    assert scalars.scalars(here()) == {
        "step": "3", "loss": "2.5", "due": "True", "best": "None", "mode": "'train'",
    }  # fmt: skip
    del step, loss, due, best, mode


def test_globals_and_attributes_are_told_where_the_code_names_them() -> None:
    args = Config(resume=True, inner=Config(every=5), unused=1)
    told = scalars.scalars(here())
    if limit and args.resume and args.inner.every:
        assert told == {"limit": "7", "args.resume": "True", "args.inner.every": "5"}


@pytest.mark.parametrize(
    "value",
    [Number(3), "x" * 61, 1 << 65, [1], (1,), b"x", object(), {"a": 1}, 2j],
    ids=lambda value: type(value).__name__,
)
def test_nothing_else_is_told(value: object) -> None:
    assert "value" not in scalars.scalars(here())


def test_nothing_of_the_jobs_is_called() -> None:
    run, slots = Hostile(), Slotted()
    told = scalars.scalars(here())
    assert told == {"run.step": "3"}
    assert Hostile.asked == []
    if run.step and run.resume and slots.step:
        Hostile.asked.clear()


def test_secrets_are_left_out() -> None:
    api_token, keys = "abc", Config(password="x", access_key="y", count=1)
    told = scalars.scalars(here())
    assert told == {"keys.count": "1"}
    assert api_token and keys.password and keys.access_key and keys.count


def test_only_so_many_are_told() -> None:
    names = {f"name_{number}": number for number in range(scalars.MOST * 2)}
    frame: list[FrameType] = []
    exec("frame.append(here())", {"frame": frame, "here": here}, names)
    assert len(scalars.scalars(frame[0])) == scalars.MOST


def test_nothing_is_kept_alive() -> None:
    class Model:
        pass

    def step() -> tuple[FrameType, weakref.ref[Model]]:
        model = Model()
        frame, known = sys._getframe(), weakref.ref(model)
        scalars.scalars(frame)
        del model
        return frame, known

    _, known = step()
    assert known() is None


def test_the_exception_that_is_handled_is_told() -> None:
    ident = threading.get_ident()
    assert scalars.handled(ident) == {}
    try:
        raise ValueError("bad batch 7")
    except ValueError:
        assert scalars.handled(ident) == {"sys.exception()": repr("ValueError: bad batch 7")}
    try:
        raise UnspeakableError("x" * 500)
    except UnspeakableError:
        assert scalars.handled(ident) == {"sys.exception()": repr("UnspeakableError")}


def test_what_is_handled_first_is_told_with_its_line_and_without_code_of_the_jobs() -> None:
    ident = threading.get_ident()
    assert exits.handled(ident) is None
    try:
        try:
            raise UnspeakableError("record 7")
        except UnspeakableError:
            shut_down()
    except KeyError:
        told = exits.handled(ident)
    assert told is not None
    assert (told["type"], told["message"]) == ("UnspeakableError", "record 7")
    assert told["masked"] == ["KeyError: worker"]
    assert any(frame[2] == "shut_down" for frame in told["frames"]) is False
    with contextlib.suppress(StopIteration):
        try:
            next(iter(()))
        except StopIteration:
            assert exits.handled(ident) is None
            raise


def shut_down() -> None:
    raise KeyError("worker")


class UnspeakableError(Exception):
    def __str__(self) -> str:
        raise AssertionError("it runs code of the job's")


def test_the_users_frames_are_told_by_their_place() -> None:
    step = 1
    told = stacks.values(here(), threading.get_ident())
    assert all(place >= 0 for place in told)
    assert step
