"""The calls of real jobs, as their records have them, and that a job does not notice."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from both_ways import NOTE, Lab

from helpers.beacon.threads import VALUES_AFTER

pytestmark = [pytest.mark.real, pytest.mark.nightly]


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


TRAINING = (
    NOTE
    + """
import glob, time
import torch, torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

def validate(step, api_key="sk-live-123"):
    loss = torch.ones(2)
    dist.all_reduce(loss)
    dist.all_reduce(loss, group=alone)

def train(model):
    for step in range(3):
        lr = 0.5 / (step + 1)
        validate(step)
        loss = model(torch.ones(1, 4)).sum()
        if step == 2 and rank == 0:
            note([record_of_waiting_rank(), time.monotonic()])
        loss.backward()

def record_of_waiting_rank():
    pids = json.load(open("pid"))
    record = {}
    from stuck_ranks_beacon import files
    while not record.get("call_history", {}).get("newest"):
        record = json.loads(files.read(files.record_path(os.environ["STUCK_RANKS_RUN"], pids)) or "{}")
        time.sleep(0.05)
    return record

dist.init_process_group("gloo")
rank = dist.get_rank()
if rank == 1:
    json.dump(os.getpid(), open("pid", "w"))
alone = dist.new_group([0], group_desc="alone")
model = DistributedDataParallel(torch.nn.Linear(4, 1))
train(model)
del model
dist.destroy_process_group()
"""
)


def test_a_reduction_of_ddp_has_the_values_of_the_call_before_it(lab: Lab) -> None:
    """Rank 1 waits in `backward`, whose reduction C++ issues; rank 0 reads its record."""
    lab.write(TRAINING)
    torchrun = str(Path(sys.executable).with_name("torchrun"))
    watched = lab.watched(torchrun, "--standalone", "--nproc-per-node=2", "job.py")
    assert watched.code == 0, watched.lines
    record, now = watched.facts
    history = record["call_history"]
    assert (history["collectives"], history["p2p"]) == ({"default": 4}, {})  # none of the other's group
    assert [(call["op"], call["number"]) for call in history["newest"]] == [
        ("new_group", 1),
        ("all_reduce", 2),
        ("all_reduce", 3),
        ("all_reduce", 4),
    ]
    last = history["newest"][-1]
    lines = TRAINING.splitlines()
    places = [(lines[line - 1].strip(), name) for _, line, name, _ in history["places"][last["place"]]]
    assert places == [
        ("dist.all_reduce(loss)", "validate"),
        ("validate(step)", "train"),
        ("train(model)", "<module>"),
    ]
    assert last["values"][0] == {"step": "2", "alone": "-100"}
    assert last["values"][1]["lr"] == repr(0.5 / 3)
    assert "sk-live-123" not in json.dumps(record)
    main = next(thread for thread in record["threads"] if thread["main"])
    assert main["call"] is None or main["call"]["op"] == "backward"
    assert main["ident"] == last["thread"] and now - last["at"] >= VALUES_AFTER
    assert "faults" not in record or record["faults"] == {}


SAME = (
    NOTE
    + """
import copy, inspect, pickle, time, traceback, weakref
import torch, torch.distributed as dist
from torch._dynamo.utils import counters
from torch.distributed import distributed_c10d as c10d

asks = c10d._rank_not_in_group
while "STUCK_RANKS_RUN" in os.environ and not hasattr(asks, "__wrapped__"):
    time.sleep(0.01)
    asks = c10d._rank_not_in_group
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=0, world_size=1)

def reduced(x):
    y = x * 2
    dist.all_reduce(y)
    return y + dist.get_rank()

def waits(x):
    y = x * 3
    dist.barrier()
    return y + 1

def asked(x):
    return x + 1 if dist._rank_not_in_group(None) else c10d._rank_not_in_group(None) + x

facts = [asks is dist._rank_not_in_group, pickle.loads(pickle.dumps(asks)) is asks]
facts += [str(inspect.signature(asks)), inspect.getsource(asks)]
facts += [asks.__module__, asks.__name__, asks.__doc__]
for function in (reduced, waits, asked):
    torch._dynamo.reset()
    counters.clear()
    found = torch._dynamo.explain(function)(torch.ones(2))
    facts += [found.graph_count, found.graph_break_count, [str(r.reason) for r in found.break_reasons]]
    compiled = torch.compile(function, backend="aot_eager")
    facts += [compiled(torch.ones(2)).tolist() for _ in range(2)]
    facts += [{key: dict(counters[key]) for key in ("graph_break", "unimplemented")}]
    facts += [counters["stats"]["unique_graphs"]]
for call in (
    lambda: dist.all_reduce("no tensor"),
    lambda: dist.broadcast(torch.ones(2), src=5),
    lambda: dist.send(torch.ones(2), dst=0),
    lambda: dist.all_gather_into_tensor(torch.ones(3), torch.ones(2)),
    lambda: dist.all_reduce(torch.ones(2), group=3),
):
    try:
        call()
    except Exception:
        facts.append(traceback.format_exc())
big = torch.ones(1000)
references = sys.getrefcount(big)
dist.all_reduce(big)
known, counts = weakref.ref(big), 1
while counts:  # a thread of gloo's lets go of it a moment later
    counts = sys.getrefcount(big) - references
del big
note([*facts, counts, known() is None])
dist.destroy_process_group()
"""
)


def test_a_job_cannot_tell_that_its_calls_are_noted(lab: Lab) -> None:
    """Compiled functions, failing calls, references, and what can be seen of torch's function."""
    lab.write("import sys\n" + SAME)
    plain = lab.plain(sys.executable, "job.py")
    assert plain.code == 0, plain.lines
    (lab.folder / "store").unlink(missing_ok=True)
    watched = lab.watched(sys.executable, "job.py")
    assert watched.facts == plain.facts and watched.code == 0
    assert len([fact for fact in plain.facts if "Traceback" in str(fact)]) >= 3
    assert plain.facts[-2:] == [0, True]


AT_ONCE = (
    NOTE
    + """
import time
import torch, torch.distributed as dist
dist.init_process_group("gloo", init_method=f"file://{os.getcwd()}/store", rank=0, world_size=1)
dist.all_reduce(torch.ones(1))
dist.all_reduce(torch.ones(1))
record, until = {}, time.monotonic() + 20
# One may be written between the two calls.
while record.get("call_history", {}).get("collectives") != {"default": 2} and time.monotonic() < until:
    from stuck_ranks_beacon import files
    path = files.record_path(os.environ["STUCK_RANKS_RUN"], os.getpid())
    record = json.loads(files.read(path) or "{}") if os.path.exists(path) else {}
    time.sleep(0.05)
history = record["call_history"]
note([history["collectives"], history["whole"]])
dist.destroy_process_group()
"""
)


def test_the_calls_are_counted_from_the_first_one_on(lab: Lab) -> None:
    """It comes at once after the import of torch, before any tick of the beacon."""
    lab.write(AT_ONCE)
    watched = lab.watched(sys.executable, "job.py")
    assert watched.code == 0, watched.lines
    assert watched.facts == [{"default": 2}, True]
