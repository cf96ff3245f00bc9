"""Which lines ask for a value of a device."""

from __future__ import annotations

import pytest

from helpers.model.frames import Frame
from helpers.observe.device_reads import read_at
from helpers.observe.source import Sources

LINES = [
    ("loss = out.item()", "item"),
    ("losses.append(loss.detach().cpu())", "cpu"),
    ("x = y.to('cpu')", "to"),
    ("torch.cuda.synchronize()", "synchronize"),
    ("target.copy_(source)", "copy_"),
    ("print(f'{loss:.3f}')", "print"),
    ("total += float(loss)", "float"),
    ("if loss > best:\n    best = loss", "if"),
    ("while not done:\n    pass", "if"),
    ("best = loss if loss < best else best", "if"),
    ("assert torch.isfinite(loss)", "if"),
    ("if loss.item() > best:\n    pass", "item"),
    ("for value in losses.tolist():\n    pass", "tolist"),
    ("with autocast():\n    loss.item()", None),
    ("loss = model(batch)", None),
    ("dist.all_reduce(loss)", None),
    ("loss.backward()", None),
]


def sources(**texts: str) -> Sources:
    return Sources("/job", lambda question: texts.get(question.path.removeprefix("/job/").split(".")[0]))


@pytest.mark.parametrize(("text", "asked"), LINES, ids=[line.splitlines()[0] for line, _ in LINES])
def test_what_a_line_asks_for(text: str, asked: str | None) -> None:
    assert read_at([Frame("train.py", 1, "step", True)], sources(train=text)) == asked


@pytest.mark.parametrize(
    ("library", "asked"), [("return norm.item()", "item"), ("return norm", None)], ids=["reads", "not"]
)
def test_a_library_may_ask_on_behalf_of_the_user(library: str, asked: str | None) -> None:
    frames = [Frame("clip.py", 1, "clip_grad_norm_", False), Frame("train.py", 1, "step", True)]
    assert read_at(frames, sources(clip=library, train="clip(model)")) == asked
    beyond = [*frames, Frame("main.py", 1, "main", True)]
    assert read_at(beyond, sources(clip=library, train="clip(model)", main="loss.item()")) == asked


def test_a_file_that_has_not_been_read_asks_for_nothing() -> None:
    assert read_at([Frame("train.py", 1, "step", True)], sources()) is None
