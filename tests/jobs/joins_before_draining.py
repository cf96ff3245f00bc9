"""One process waits for its child before it has taken what the child has put into a queue."""

import multiprocessing


def produce(results: "multiprocessing.Queue[bytes]") -> None:
    results.put(bytes(10_000_000))


if __name__ == "__main__":
    results: "multiprocessing.Queue[bytes]" = multiprocessing.Queue()
    child = multiprocessing.Process(target=produce, args=(results,))
    child.start()
    child.join()  # <- culprit, rank 0
    print(len(results.get()))
