"""Draws that are the same on every computer and with every version of Python.

The generators of the inputs use nothing else: the methods of Python's own
`random` module may change how they use its bits from version to version.
"""

MASK = (1 << 64) - 1


class Draw:
    """SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), seeded with a number."""

    def __init__(self, seed):
        self.state = seed & MASK

    def bits(self):
        """64 bits."""
        self.state = (self.state + 0x9E3779B97F4A7C15) & MASK
        z = self.state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
        return z ^ (z >> 31)

    def below(self, end):
        """A number from 0 to end - 1."""
        return (self.bits() * end) >> 64

    def between(self, first, last):
        """A number from first to last, both included."""
        return first + self.below(last - first + 1)

    def pick(self, items):
        """One of the items."""
        return items[self.below(len(items))]


ONSETS = "b br c ch d f fl g gr h j k l m n p pl qu r s sh sl st t tr v w".split()
NUCLEI = "a ai e ea i o oo ou u".split()
CODAS = "- - - ck d l m n nd nt r rd s st t th".split()


def syllable(draw):
    """A syllable that can be spoken."""
    return draw.pick(ONSETS) + draw.pick(NUCLEI) + draw.pick(CODAS).replace("-", "")


class Words:
    """A vocabulary whose words are drawn by Zipf's law, as those of a text are."""

    def __init__(self, draw, count):
        self.draw = draw
        words = {}
        while len(words) < count:
            words["".join(syllable(draw) for _ in range(draw.between(1, 3)))] = None
        self.words = list(words)
        total = 0
        self.ends = []
        for rank in range(1, count + 1):
            # In units of 2^-20 of the most frequent word's weight.
            total += (1 << 20) // rank
            self.ends.append(total)

    def word(self):
        """One word."""
        point = self.draw.below(self.ends[-1])
        low, high = 0, len(self.ends) - 1
        while low < high:
            middle = (low + high) // 2
            if self.ends[middle] <= point:
                low = middle + 1
            else:
                high = middle
        return self.words[low]

    def text(self, first, last):
        """From first to last words, with spaces between."""
        return " ".join(self.word() for _ in range(self.draw.between(first, last)))
