import multiprocessing


def produce(results: "multiprocessing.Queue[bytes]") -> None:
    results.put(bytes(10_000_000))


if __name__ == "__main__":
    results: "multiprocessing.Queue[bytes]" = multiprocessing.Queue()
    child = multiprocessing.Process(target=produce, args=(results,))
    child.start()
    print(len(results.get()))
    child.join()
