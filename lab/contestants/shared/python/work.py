"""The computations of the contract, the way one writes them in Python.

No import beyond the standard library, no cleverness, and nothing newer than Python 3.6, so that
every Python contestant runs this very file.
"""


def million_loop(seed):
    """Return the total of a million steps that start at ``seed``."""
    total = seed
    for i in range(1000000):
        total += i * 3
        if total & 64:
            total -= i
    return total


def fibonacci(first=1, limit=100000000):
    """Return the Fibonacci numbers up to ``limit``, a new list on every call; they begin with ``first``, 1."""
    numbers = []
    a, b = first, 1
    while a <= limit:
        numbers.append(a)
        a, b = b, a + b
    return numbers


def fibonacci_answer(first=None):
    """Return ``OK`` if the sequence starts as it should; given ``first``, the sum of the one that starts so.

    The sum takes the list: the lab asks for it with random numbers, as a proof that it is built.
    """
    if first is None:
        return "OK" if fibonacci()[0] == 1 else "?"
    return str(sum(fibonacci(int(first))))


NAVYTUX = b"navytux.spb.ru"
NEXEDI = b"www.nexedi.com"
LAB = b"lab.nexedi.com"
ERP5 = b"www.erp5.com"


def is_close(byte, name):
    """Tell whether ``byte`` is within distance 1 of any byte of ``name``."""
    for other in name:
        if abs(byte - other) <= 1:
            return True
    return False


class Classifier:
    """Counts, for each name, how many bytes were close to it."""

    def __init__(self):
        self.navytux = 0
        self.nexedi = 0
        self.lab = 0
        self.erp5 = 0
        self.total = 0

    def next_byte(self, byte):
        """Count one byte."""
        if is_close(byte, NAVYTUX):
            self.navytux += 1
        if is_close(byte, NEXEDI):
            self.nexedi += 1
        if is_close(byte, LAB):
            self.lab += 1
        if is_close(byte, ERP5):
            self.erp5 += 1
        self.total += 1


PREFIX = b"/classify"


def classify(path):
    """Return the five lines for ``path``, the request path as bytes; what follows ``/classify`` counts."""
    classifier = Classifier()
    for byte in path[len(PREFIX) :]:
        classifier.next_byte(byte)
    return b"%s:\t%d\n%s:\t%d\n%s:\t%d\n%s:\t%d\ntotal:\t%d\n" % (
        NAVYTUX,
        classifier.navytux,
        NEXEDI,
        classifier.nexedi,
        LAB,
        classifier.lab,
        ERP5,
        classifier.erp5,
        classifier.total,
    )


def is_varied(query):
    """Return whether a query string asks for the records with texts of their own."""
    return "texts=varied" in query.split("&")


def seed_of(query):
    """Return the integer after ``seed=`` in a query string, 1 without one."""
    return number_of(query, "seed", 1)


def first_of(query):
    """Return the integer after ``first=`` in a query string, ``None`` without one."""
    return number_of(query, "first", None) if query else None


def number_of(query, wanted, default):
    """Return the integer after ``wanted=`` in a query string."""
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        if name == wanted:
            return int(value)
    return default


def greeting(path, query):
    """Return the object for a path ``/greet/NAME`` and a query with ``times=N``."""
    return {"hello": [path[len("/greet/") :]] * number_of(query, "times", 1)}
