"""Edits of the labs' programs that make a run look well, and what refuses each of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

Edits = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Attempt:
    """What a learner might hand in.

    Attributes:
        lab: its number.
        name: what was done.
        edits: of the program: text and what takes its place.
        refused: a part of what the judge says of it; empty for an honest solution.
        turn: whose copy it is.
        start: the program that is edited; that of the turn when empty.
        knobs: of the run.
    """

    lab: str
    name: str
    edits: Edits
    refused: str = ""
    turn: str = "mine"
    start: str = ""
    knobs: Mapping[str, str] = field(default_factory=dict)


CHANCE = "agreed by chance"
CHECK = "        self.new = not self.folder.exists()\n"
MKDIR = "        self.folder.mkdir(parents=True, exist_ok=True)\n"
LAUNCH = "        self.fabric.launch()\n"
STARTED = 'time.strftime("%Y%m%d-%H%M%S")\n'
MADE = "self.folder.mkdir(parents=True)"
AGREED = (MADE, "self.folder.mkdir(parents=True, exist_ok=True)")

STRATEGY = 'accelerator=options.accelerator, devices=2, strategy="ddp")'
CREATED = f"""        self.fabric = lightning.Fabric({STRATEGY}
        log.info("calls launch()")
        self.fabric.launch()
"""
BROADCASTS = f"""{CREATED}        first = self.fabric.global_rank == 0
        self.new = self.fabric.strategy.broadcast(first and not self.folder.exists())
"""
GATHERS = f"""{CREATED}        seen = [None, None]
        torch.distributed.all_gather_object(seen, not self.folder.exists())
        self.new = seen[0]
"""

LAB_01 = (
    Attempt("01", "the run is always new", ((CHECK, "        self.new = True\n"),), CHANCE),
    Attempt(
        "01", "it is never new", ((CHECK, "        self.new = False\n"),), "not every rank has logged"
    ),
    Attempt("01", "only mkdir() moves", ((MKDIR, ""), (LAUNCH, LAUNCH + MKDIR)), CHANCE),
    Attempt("01", "one device", (("devices=2", "devices=1"),), "the world size"),
    Attempt(
        "01",
        "no baseline is measured",
        (
            ("Evaluator(self.fabric, make_model(options.baseline)).loss()", "0.5"),
            ("if self.new and options.baseline", "if options.baseline"),
        ),
        CHANCE,
    ),
    Attempt(
        "01",
        "a name for all seconds",
        ((STARTED, '"run"\n'), AGREED),
        CHANCE,
        turn="again",
    ),
    Attempt(
        "01",
        "a name for an hour",
        ((STARTED, 'time.strftime("%Y%m%d-%H")\n'), AGREED),
        CHANCE,
        turn="again",
    ),
    Attempt("01", "the test is skipped", (("trainer.test()", "True"),), CHANCE, turn="again"),
    Attempt(
        "01",
        "the strategy broadcasts, in __init__",
        ((CREATED, ""), (CHECK, BROADCASTS)),
    ),
    Attempt("01", "all ranks gather, and take what rank 0 saw", ((CREATED, ""), (CHECK, GATHERS))),
)

SAVE = """    if fabric.global_rank == 0:
        fabric.save(path, {"model": model})
        print(f"saved {path.name}", flush=True)
"""
SAID = '    if fabric.global_rank == 0:\n        print(f"saved {path.name}", flush=True)\n'
SAID_INSIDE = '        print(f"saved {path.name}", flush=True)\n'
COMPARED = "compare(full_state(model), load(fabric, path))"
WHOLE = "the whole model after each"
SEVEN = '    if fabric.global_rank == 0:\n        path.write_bytes(b"7 bytes")\n'
LATER = '    if path.name == "epoch-1.ckpt":\n        fabric.save(path, {"model": model})\n'
BETTER = "            if validation < best:\n"
EARLIER = 'path.with_name("epoch-0.ckpt")'

GATHERED = """    state = full_state(model)
    if fabric.global_rank == 0:
        torch.save({"model": state}, path)
"""
LOADED = """    fabric.barrier()
    from torch.distributed.checkpoint import state_dict
    whole = state_dict.StateDictOptions(full_state_dict=True)
    state_dict.set_model_state_dict(model._forward_module, torch.load(path)["model"], options=whole)
"""
LAB_02 = (
    Attempt("02", "7 bytes", ((SAVE, SEVEN + SAID),), "not evaluated"),
    Attempt("02", "7 bytes, nothing compared", ((SAVE, SEVEN + SAID), (COMPARED, "52")), WHOLE),
    Attempt(
        "02", "an empty file first", ((SAVE, LATER + f"    else:\n        path.touch()\n{SAID}"),), WHOLE
    ),
    Attempt("02", "return at the top", ((SAVE, "    return\n"),), "not evaluated"),
    Attempt(
        "02",
        "the last one twice",
        ((SAVE, f"{LATER}        {EARLIER}.write_bytes(path.read_bytes())\n{SAID}"),),
        "the same state as",
    ),
    Attempt(
        "02",
        "a part of the model first",
        (
            (
                SAVE,
                LATER
                + '    else:\n        state = {"head.bias": torch.zeros(512)}\n'
                + '        torch.save({"model": state}, path) if fabric.global_rank == 0 else None\n'
                + SAID,
            ),
        ),
        "1 tensors, not 52",
    ),
    Attempt(
        "02",
        "every rank says it",
        (
            (
                SAVE,
                '    fabric.save(path, {"model": model})\n    print(f"saved {path.name}", flush=True)\n',
            ),
        ),
        "no other rank",
    ),
    Attempt(
        "02",
        "the answer is written down",
        ((BETTER, "            if epoch <= 2:\n"),),
        "four exchanges",
        turn="again",
    ),
    Attempt(
        "02",
        "rank 2 decides",
        (
            (
                "validate(fabric, model)\n            print",
                "fabric.broadcast(validate(fabric, model), src=2)\n            print",
            ),
        ),
        "another epoch",
        turn="again",
    ),
    Attempt(
        "02", "the last epoch", ((BETTER, "            if True:\n"),), "another epoch", turn="again"
    ),
    Attempt(
        "02",
        "by hand, from the gathered state",
        (
            (
                SAVE,
                GATHERED + SAID_INSIDE,
            ),
            (
                '    fabric.load(path, {"model": model})\n',
                LOADED,
            ),
        ),
    ),
)

LOADING = """    with Cost() as cost:
        checkpoint = torch.load(path, map_location="cpu")
        model = GPT(**checkpoint["config"])
        model.load_state_dict(checkpoint["model"])
"""
MAPPED = 'checkpoint = torch.load(path, map_location="cpu", mmap=True)\n'
ABOVE = f"""    {MAPPED}    model = GPT(**checkpoint["config"])
    model.load_state_dict(checkpoint["model"])
    with Cost() as cost:
        pass
"""
GOOD_LOAD = f"""    with Cost() as cost:
        {MAPPED}        with torch.device("meta"):
            model = GPT(**checkpoint["config"])
        model.load_state_dict(checkpoint["model"], assign=True)
"""
NEVER = f"""    {MAPPED}    with Cost() as cost, torch.device("meta"):
        model = GPT(**checkpoint["config"])
    shared = torch.full((1,), 0.01)
    state = {{name: shared.expand(p.shape) for name, p in model.named_parameters()}}
    last = {{n: p.clone() for n, p in state.items() if n.startswith("blocks.5.")}}
    model.load_state_dict(state | last, assign=True)
"""
OWN = "more memory of its own"
NONE = {"ranks": "loop", "limit": "none"}

CLONED = """    model.load_state_dict({n: p.clone() for n, p in model.state_dict().items()}, assign=True)
"""
ASSIGNED = """    with Cost() as cost:
        checkpoint = torch.load(path, weights_only=True, mmap=True)
        with torch.device("meta"):
            model = GPT(**checkpoint["config"])
        for name, weight in checkpoint["model"].items():
            owner, _, last = name.rpartition(".")
            setattr(model.get_submodule(owner), last, torch.nn.Parameter(weight))
"""
LAB_03 = (
    Attempt("03", "one copy, above the measurement", ((LOADING, ABOVE),), OWN),
    Attempt("03", "never loaded", ((LOADING, NEVER),), "do not add up"),
    Attempt(
        "03", "mapped, and one copy", (('map_location="cpu")', 'map_location="cpu", mmap=True)'),), OWN
    ),
    Attempt(
        "03",
        "copied when it is measured",
        (
            (
                LOADING,
                GOOD_LOAD + CLONED,
            ),
        ),
        OWN,
    ),
    Attempt(
        "03",
        "not with fresh weights",
        ((LOADING, GOOD_LOAD + "    torch.nn.init.ones_(model.places.weight)\n"),),
        "do not add up",
    ),
    Attempt("03", "at full memory, without a limit", (), OWN, knobs=NONE),
    Attempt(
        "03",
        "one tensor after the other",
        (
            (
                LOADING,
                ASSIGNED,
            ),
        ),
    ),
)

FIT = "        trainer.fit(model, loader, datamodule=None if loader else data)\n"
BLOCK = '    with trainer.init_module(empty_init=options.strategy == "model_parallel"):\n'
BODY = "        model = Regressor()\n"
INSIDE = "nothing but the model"
CPU = '        with torch.device("cpu"):\n    '
SPAWNED = 'num_workers=1, multiprocessing_context="spawn"'
KEEP = "the task is to keep"

ENTERED = """    block = trainer.init_module(empty_init=True)
    block.__enter__()
    if True:
"""
ON_STACK = """    from contextlib import ExitStack
    with ExitStack() as stack:
        stack.enter_context(trainer.init_module(empty_init=True))
"""
LAB_04 = (
    Attempt("04", "the device is changed inside", ((FIT, CPU + FIT),), INSIDE),
    Attempt(
        "04",
        "the block is entered by hand",
        (
            (
                BLOCK,
                ENTERED,
            ),
            (FIT, CPU + FIT),
        ),
        INSIDE,
    ),
    Attempt(
        "04",
        "the block stays on a stack",
        (
            (
                BLOCK,
                ON_STACK,
            ),
            (FIT, CPU + FIT),
        ),
        INSIDE,
    ),
    Attempt(
        "04",
        "the default device is reset",
        ((FIT, '        torch.set_default_device("cpu")\n' + FIT),),
        INSIDE,
    ),
    Attempt("04", "no init_module", ((BLOCK, "    if True:\n"),), "another device"),
    Attempt(
        "04",
        "no worker",
        (
            ("lambda part: part / 10", "tenth"),
            (SPAWNED, "num_workers=0"),
            ("class ScaledData", "def tenth(part):\n    return part / 10\n\n\nclass ScaledData"),
        ),
        KEEP,
        turn="again",
    ),
    Attempt("04", "not scaled", (("lambda part: part / 10", "abs"),), "keep the scaling", turn="again"),
    Attempt("04", "forked", (('"spawn")', '"fork")'),), KEEP, turn="again"),
    Attempt(
        "04",
        "the model alone, in a function",
        (
            (BLOCK, ""),
            (BODY, "    model = made(trainer, options)\n"),
            ("        loader = data", "    loader = data"),
            (FIT, FIT[4:]),
            (
                "def main()",
                "def made(trainer, options):\n" + BLOCK + "        return Regressor()\n\n\ndef main()",
            ),
        ),
    ),
    Attempt(
        "04",
        "a partial function",
        (
            ("lambda part: part / 10", "functools.partial(torch.mul, 0.1)"),
            ("import lightning\n", "import functools\n\nimport lightning\nimport torch\n"),
        ),
        turn="again",
        start="unpicklable",
    ),
)

TOP = """options = parser.parse_args()
fabric = lightning.Fabric(accelerator=options.accelerator, devices=options.devices, strategy="ddp")
fabric.launch()
"""
GUARD = 'if __name__ == "__main__":\n'
MOVED = ((TOP, ""), (GUARD, GUARD + "".join(f"    {line}\n" for line in TOP.splitlines())))
LOOP = "    for inputs, targets in loader:\n"
NUMBER = "        num_workers=1,\n        multiprocessing_context=start_method,\n"
ONE_BATCH = f"""    next(iter(loader))
    loader = DataLoader(make_data(), batch_size=10, shuffle=True)
    loader = fabric.setup_dataloaders(loader)
{LOOP}"""
BY_HAND = """    next(iter(loader))
    whole = make_data().tensors
    for at in range(fabric.global_rank * 10, 160, 20):
        inputs, targets = (part[at : at + 10] for part in whole)
"""
PLAIN_TOP = """dist.init_process_group("gloo")
RANK, WORLD_SIZE = dist.get_rank(), dist.get_world_size()
torch.manual_seed(7)
"""
PLAIN_MOVED = (
    (PLAIN_TOP, ""),
    (GUARD, GUARD + "".join(f"    {line}\n" for line in PLAIN_TOP.splitlines())),
)
TO_KEEP = "says to keep it"

LAB_05 = (
    Attempt("05", "under the guard", MOVED),
    Attempt(
        "05", "a batch from the worker, then none", (*MOVED, (LOOP, ONE_BATCH)), "made 8 batches itself"
    ),
    Attempt("05", "a batch from the worker, then by hand", (*MOVED, (LOOP, BY_HAND)), "not 8"),
    Attempt(
        "05",
        "the loop ends after a step",
        (("        steps += 1\n", "        steps += 1\n        break\n"),),
        "not evaluated",
    ),
    Attempt(
        "05",
        "the error is passed over",
        (("fabric.launch()\n", "try:\n    fabric.launch()\nexcept Exception:\n    pass\n"),),
        "not ",
    ),
    Attempt("05", "no worker", (*MOVED, (NUMBER, "")), TO_KEEP),
    Attempt(
        "05",
        "forked all the same",
        (("multiprocessing_context=start_method", 'multiprocessing_context="fork"'),),
        TO_KEEP,
    ),
    Attempt(
        "05",
        "a step is enough",
        (*MOVED, ("        steps += 1\n", "        steps += 1\n        break\n")),
        "not 8",
    ),
    Attempt(
        "05",
        "no worker",
        (*PLAIN_MOVED, ('        num_workers=1,\n        multiprocessing_context="spawn",\n', "")),
        TO_KEEP,
        turn="again",
    ),
    Attempt("05", "under the guard", PLAIN_MOVED, turn="again"),
)

ATTEMPTS = (*LAB_01, *LAB_02, *LAB_03, *LAB_04, *LAB_05)
