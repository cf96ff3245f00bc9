"""What the words of a report mean: for its schema, for `explain` and for the guide's glossary."""

TERMS = {
    "verdict": (
        "What the report concludes: an outcome (`ok`, `error`, `hang`, `running`), a cause, the odd "
        "ones out, `where`, and, if it can be told, where the ranks parted."
    ),
    "proved": (
        "A verdict is proved if it follows from what was seen alone; for a hang, from the wait-for "
        "graph: no rank can ever continue, however long you wait. Otherwise it rests on patience, or on "
        "something that was inferred."
    ),
    "suspicion": (
        "A hang that is not proved: for `--patience` seconds a rank has neither moved nor used CPU "
        "while others waited for it."
    ),
    "odd one out": (
        "A rank to look at first; the report calls it a culprit. Of a hang, these are the smallest set "
        "of ranks that, set free, sets all others free; where no majority agrees, all of them. The fix "
        "may have to be made for the others."
    ),
    "where": (
        "The line at which the first cause shows: of the first error, or, in a hang, at which the first "
        "of the culprits waits. Where the ranks' calls came apart earlier, it is the line of the first "
        "call that differs, which no rank need be at any more."
    ),
    "parted": (
        "The statement at which ranks went different ways, an `if` or a loop mostly, where one alone "
        "explains their lines. The report names it with its line, and with the values that differ."
    ),
    "guard": (
        "A statement without which the odd rank would not have got to its call. Where it cannot be told "
        "which statement decided, the report lists at most three of them."
    ),
    "stall": (
        "The time from the moment at which a waiting rank last moved. It ends with the verdict, or when "
        "a rank moves again."
    ),
    "masked": (
        "An error is masked if it only follows from an earlier one, such as `Connection closed by peer` "
        "after a rank has died. Read the first error instead."
    ),
    "slow": (
        "The rank, or the group of ranks, that all others waited for while the job ran, with its share "
        "of the time and the line at which it was."
    ),
}
"""Word of a report -> its meaning, in Markdown."""
