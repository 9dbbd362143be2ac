"""gdb: the goroutines of compiled handlers that wait, and what each of them is doing.

    gdb -p PID -x scripts/gdb_goroutines.py
    (gdb) info goroutines          one line each: number, address, the first function that is not Citius'
    (gdb) goroutine 3              the backtrace of number 3
    (gdb) goroutine all            of each
    (gdb) goroutine 3 info locals  another command of gdb, in the first frame that is not Citius'

Numbers are of the order of addresses, and change when the program continues. The program has to be alive:
gdb cannot set registers in a core file. Where handlers are compiled with -g, arguments and lines are shown.
Goroutines that run are seen in `info threads`. Linux, x86-64 and aarch64.
"""

import gdb  # pyright: ignore[reportMissingModuleSource, reportMissingImports]

WORD_BYTES = 8
# As in crates/citius-coroutine/src/linux: `CITIUS_COROUTINE_SLABS`, `Stack::mark`.
SLABS_MAX = 4096
SLAB_WORDS = 3
MARK_BYTES = 16
# What a suspended coroutine has saved lies at most so far below its mark.
SAVED_BYTES_MAX = 512
# The registers that the switch saves, from the stack pointer upwards; which of them is the address of the
# next instruction; words that it takes; the stack pointer.
SAVED = {
    "i386:x86-64": (("rip", "rbx", "rbp"), "rip", 3, "rsp"),
    "aarch64": (("x19", "x29", "pc"), "pc", 4, "sp"),
}
# The instructions there, which only the switch has: they put away registers of the code that resumes.
RESUMING = {
    "i386:x86-64": bytes.fromhex("55 48 89 66 f0"),
    "aarch64": bytes.fromhex("fd 7b be a9 f3 0b 00 f9"),
}
# Below the first function of a coroutine: the way back to the code that has resumed it, which is old.
FIRST_FRAME = "stack_init_trampoline"
FRAMES_MAX = 200
OWN = (
    "citius_",
    "corosensei",
    "<citius_",
    "<corosensei",
    "core::",
    "alloc::",
    "std::",
    "_core::",
    "stack_init",
)


def words(address, count):
    """Words of the program's memory."""
    memory = gdb.selected_inferior().read_memory(address, count * WORD_BYTES)
    return memoryview(bytes(memory)).cast("Q")


def address_of(symbol):
    """Where a variable of the program is."""
    try:
        return int(gdb.parse_and_eval(f"(unsigned long)&{symbol}"))
    except gdb.error as error:
        raise gdb.GdbError(
            f"there is no {symbol} in this program: is it a server of Citius, and are symbols read ({error})?"
        ) from None


def is_resumed_at(address):
    """Whether a coroutine that is suspended continues at this instruction."""
    code = RESUMING[gdb.selected_inferior().architecture().name()]
    try:
        return bytes(gdb.selected_inferior().read_memory(address, len(code))) == code
    except gdb.MemoryError:
        return False


def suspended():
    """The address of what each suspended coroutine has saved."""
    all_words = words(address_of("CITIUS_COROUTINE_SLABS"), SLABS_MAX * SLAB_WORDS)
    found = []
    for at in range(0, len(all_words), SLAB_WORDS):
        start, stride, count = all_words[at : at + SLAB_WORDS]
        if not start:
            continue
        for number in range(1, count + 1):
            mark = start + number * stride - MARK_BYTES
            here = words(mark, 1)[0]
            if here and (saved := find_saved(here)):
                found.append(saved)
    return sorted(found)


def find_saved(here):
    """The address of what is saved below a mark; `None`: there is no such thing."""
    names, counter, _, _ = registers()
    low = here - SAVED_BYTES_MAX
    near = words(low, SAVED_BYTES_MAX // WORD_BYTES)
    for at in reversed(range(len(near))):
        if near[at] and is_resumed_at(near[at]):
            return low + (at - names.index(counter)) * WORD_BYTES
    return None


class Switched:
    """The registers of this thread are those of a suspended coroutine meanwhile."""

    def __init__(self, saved):
        names, counter, count, stack = registers()
        content = dict(zip(names, words(saved, count), strict=False))
        # The counter last: gdb looks for the frame again with each.
        next_instruction = content.pop(counter)
        self.new = content | {stack: saved + count * WORD_BYTES, counter: next_instruction}

    def __enter__(self):
        gdb.newest_frame().select()
        self.old = {name: int(gdb.parse_and_eval(f"(unsigned long)${name}")) for name in self.new}
        self.set(self.new)

    def __exit__(self, *_):
        gdb.newest_frame().select()
        self.set(self.old)

    @staticmethod
    def set(values):
        """Set registers."""
        for name, value in values.items():
            gdb.execute(f"set ${name} = {value:#x}")


def registers():
    """The row of `SAVED` of this program."""
    name = gdb.selected_inferior().architecture().name()
    if name not in SAVED:
        raise gdb.GdbError(f"goroutines are read on {' and '.join(SAVED)}, and this is {name}")
    return SAVED[name]


def frames():
    """The frames of the coroutine that is switched to, from the newest on."""
    frame, found = gdb.newest_frame(), []
    while frame is not None and len(found) < FRAMES_MAX:
        if FIRST_FRAME in (frame.name() or ""):
            break
        found.append(frame)
        frame = frame.older()
    return found


def foreign(all_frames):
    """The first one that is not of Citius or of Rust."""
    for frame in all_frames:
        library = gdb.solib_name(frame.pc()) or ""
        if frame.name() and "_core." not in library and not frame.name().startswith(OWN):
            return frame
    return None


def describe(frame):
    """Its function, and where that is in the source."""
    if frame is None:
        return "?"
    line = frame.find_sal()
    where = f" at {line.symtab.filename}:{line.line}" if line.symtab else ""
    return f"{frame.name()}{where}"


class InfoGoroutines(gdb.Command):
    """List the goroutines that wait."""

    def __init__(self):
        super().__init__("info goroutines", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        """Called by gdb."""
        found = suspended()
        for number, saved in enumerate(found, 1):
            with Switched(saved):
                gdb.write(f"{number:5} {saved:#x} {describe(foreign(frames()))}\n")
        gdb.write(f"{len(found)} goroutines wait\n")


class Goroutine(gdb.Command):
    """goroutine NUMBER|all [COMMAND]: a backtrace, or another command in the first frame not of Citius."""

    def __init__(self):
        super().__init__("goroutine", gdb.COMMAND_STACK)

    def invoke(self, argument, from_tty):
        """Called by gdb."""
        which, _, command = argument.partition(" ")
        found = suspended()
        if which != "all" and not (which.isdigit() and 1 <= int(which) <= len(found)):
            raise gdb.GdbError(f"expected all or a number of 1 to {len(found)}, got {which!r}")
        for number in range(1, len(found) + 1) if which == "all" else [int(which)]:
            gdb.write(f"goroutine {number}\n")
            with Switched(found[number - 1]):
                all_frames = frames()
                if command:
                    (foreign(all_frames) or all_frames[0]).select()
                gdb.execute(command or f"backtrace {len(all_frames)}")


InfoGoroutines()
Goroutine()
