"""A table of the scores of all classes."""

from evalkit.scores import class_score


class Report:
    def __init__(self, names):
        self.names = names
        self.rows = {}

    def fill(self, predicted, labels):
        for cls, name in enumerate(self.names):
            score = class_score(predicted, labels, cls)
            if score is None:
                continue
            self.rows[name] = score
        return self

    def macro(self):
        if not self.rows:
            return 0.0
        return sum(self.rows.values()) / len(self.rows)
