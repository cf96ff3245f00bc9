"""The loops of a directed graph: its strongly connected components, in linear time."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from typing import TypeVar

Node = TypeVar("Node", bound=Hashable)


def loops(leads: Mapping[Node, Iterable[Node]]) -> list[frozenset[Node]]:
    """Nodes that lead to each other, together; a node that nothing leads back to is a loop of its own.

    Each loop comes after all the loops that it leads to. The algorithm is that of Gabow, "Path-based
    depth-first search for strong and biconnected components" (2000), without recursion: a chain of ranks
    may be thousands long.

    Args:
        leads: every node -> the nodes that it leads to, each of them a key, too.
    """
    components: list[frozenset[Node]] = []
    order: dict[Node, int] = {}
    done: set[Node] = set()
    path: list[Node] = []  # nodes seen and not yet in a loop
    starts: list[Node] = []  # of those, the ones that may be the first of a loop
    for root in leads:
        walk = [] if root in order else [(root, iter(leads[root]))]
        while walk:
            node, following = walk.pop()
            if node not in order:
                order[node] = len(order)
                path.append(node)
                starts.append(node)
            for after in following:
                if after not in order:
                    walk += [(node, following), (after, iter(leads[after]))]
                    break
                if after not in done:
                    while order[starts[-1]] > order[after]:
                        starts.pop()
            else:
                if starts[-1] == node:
                    starts.pop()
                    loop = [path.pop()]
                    while loop[-1] != node:
                        loop.append(path.pop())
                    components.append(frozenset(loop))
                    done.update(loop)
    return components
