"""Sentences as lists of tokens; 0 pads."""

import random


class Corpus:
    """Sentences of several sources, one source after the other."""

    def __init__(self, config: dict) -> None:
        self.vocabulary = config["vocabulary"]
        chance = random.Random(config["seed"])
        self._sentences = [
            self._sentence(chance, *source["length"])
            for source in config["sources"]
            for _ in range(source["sentences"])
        ]

    def __len__(self) -> int:
        return len(self._sentences)

    def __getitem__(self, index: int) -> list[int]:
        return self._sentences[index]

    def _sentence(self, chance: random.Random, shortest: int, longest: int) -> list[int]:
        token = chance.randrange(1, self.vocabulary)
        sentence = [token]
        for _ in range(chance.randint(shortest, longest) - 1):
            token = (2 * token + chance.randrange(3)) % (self.vocabulary - 1) + 1
            sentence.append(token)
        return sentence
