# SPDX-License-Identifier: MIT
"""Tidepool in gdb: `tidepool pools`, `tidepool sites`, `tidepool where ADDRESS`, and how pools, scopes,
arrays, sites and types are printed.

Nothing of the program is called and nothing is written: memory is read by the library's debug
information, so a core file will do. gdb loads this file by itself with the library
(profiler/README.md says from where); by hand: `source tidepool-gdb.py`."""
import gdb

BUILTIN = ("none i32 f32 f64 i64 i8 i16 u8 u16 u32 u64 f16 bf16 c64 c128 bool bit").split()
TIERS = ("full", "table", "compiled")
KINDS = ("scope", "dispatch")
KEY_FIRST = 65536
NO_LIMIT = (1 << 64) - 1
CHUNK = 1024  # numbers of types in one table of them
SHOWN = 1000000  # most entries of a list that are believed
TORN = (gdb.error, IndexError, OverflowError, ValueError)  # what memory that is not what it should be leads to


def name_of(names, number):
    return names[int(number)] if 0 <= int(number) < len(names) else "?"


# ---- reading -------------------------------------------------------------------------------------


class Copy:
    """One copy of the library in the process: the shared one, or one that was linked statically."""

    def __init__(self, objfile):
        self.objfile = objfile

    def static(self, name):
        symbol = self.objfile.lookup_static_symbol(name) or self.objfile.lookup_global_symbol(name)
        return symbol.value() if symbol is not None else None

    def pools(self):
        """The youngest first."""
        pool, seen = self.static("core_all_pools"), 0
        while pool is not None and int(pool) != 0 and seen < SHOWN:
            yield pool.dereference()
            pool, seen = pool["core"]["list"]["next"], seen + 1

    def sites(self):
        known = self.static("site_list")
        for i in range(min(int(known["count"]), SHOWN) if known is not None else 0):
            yield known["sites"][i].dereference()

    def code_objects(self):
        one, seen = self.static("code_list"), 0
        while one is not None and int(one) != 0 and seen < SHOWN:
            yield one.dereference()
            one, seen = one["next"], seen + 1

    def buffers(self):
        one, seen = self.static("instance_list"), 0
        while one is not None and int(one) != 0 and seen < SHOWN:
            yield one.dereference()
            one, seen = one["next"], seen + 1

    def guards(self):
        known = self.static("guard_all")
        for i in range(min(int(known["count"]), SHOWN) if known is not None else 0):
            if int(known["entries"][i]["state"]) != 0:
                yield known["entries"][i]


def copies():
    """Of the library with its debug information."""
    found = [Copy(objfile) for objfile in gdb.objfiles()]
    found = [copy for copy in found if copy.static("core_all_pools") is not None]
    if not found:
        raise gdb.GdbError("no library here has debug information of Tidepool")
    return found


def text(value):
    """An array of char or a pointer to some, up to its 0; what cannot be read is empty."""
    try:
        kind = value.type.strip_typedefs()
        if kind.code == gdb.TYPE_CODE_PTR and int(value) == 0:
            return ""
        if kind.code == gdb.TYPE_CODE_ARRAY and kind.range()[1] < 1:  # it ends its structure
            value = value.address.cast(kind.target().pointer())
        out = value.string(errors="replace")
    except (gdb.error, UnicodeError):
        return ""
    return "".join(c if c.isprintable() else "?" for c in out.split("\0")[0])


def type_facts(number):
    """Name, and size in bytes; the size is 0 for bits and for what is not known."""
    sizes = (0, 4, 4, 8, 8, 1, 2, 1, 2, 4, 8, 2, 2, 8, 16, 1, 0)
    if number < len(BUILTIN):
        return BUILTIN[number], sizes[number]
    if number >= KEY_FIRST:
        return "key %d" % (number - KEY_FIRST), 0
    for copy in copies():
        chunks = copy.static("type_chunks")
        if chunks is not None and int(chunks[number // CHUNK]) != 0:
            facts = chunks[number // CHUNK][number % CHUNK]
            if int(facts) != 0:
                return text(facts["name"]), int(facts["size"])
    return "type %d" % number, 0


def type_name(number):
    return type_facts(int(number))[0]


def size_words(count):
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 10240 or unit == "GiB":
            return "%.0f %s" % (count, unit)
        count /= 1024


def place_words(place):
    name = text(place["file"])
    return "%s:%d" % (name, int(place["line"])) if name else ""


# ---- pools ---------------------------------------------------------------------------------------


def rows_of(core):
    for i in range(int(core["rows"]["used_count"])):
        yield core["rows"]["used"][i].dereference()


def live_of(row):
    """Slots before the first free one."""
    live = int(row["shelf"]["next"]) - int(row["slots"])
    return min(max(live // row["slots"].dereference().type.sizeof, 0), int(row["count"]))


def depth_of(pool):
    return (int(pool["tag"]) & 0xFFFFFF) - 1


class Row:
    """A row of slots in numbers; one read for all records."""

    def __init__(self, row):
        self.count, self.live = min(int(row["count"]), SHOWN), live_of(row)
        self.bytes = [int(row["records"][i]["bytes"]) for i in range(self.count)]


def pool_live_bytes(core):
    rows = [Row(row) for row in rows_of(core)]
    return sum(sum(row.bytes[: row.live]) for row in rows)


def pool_line(pool):
    core = pool["core"].dereference()
    memory = core["memory"]
    limit = int(memory["limit_bytes"])
    return "%4d  %-16s %-15s %-8s %10s %10s %10s %10s %8d %8d %5d  %#x" % (
        int(core["list"]["number"]), text(core["name"])[:16], text(core["owner"]["name"]),
        text(core["device"]["name"]), size_words(int(memory["bytes_held"])),
        size_words(pool_live_bytes(core)), size_words(int(memory["bytes_peak"])),
        "-" if limit == NO_LIMIT else size_words(limit), int(memory["allocations"]),
        int(memory["exchanges"]), depth_of(pool), int(pool.address))


def show_pools():
    print("  ID  NAME             THREAD          DEVICE         HELD       LIVE       PEAK      LIMIT"
          "   ALLOCS  EXCHGES DEPTH  ADDRESS")
    for copy in copies():
        for pool in reversed(list(copy.pools())):
            try:
                print(pool_line(pool))
            except TORN as error:
                print("   ?  pool at %#x: %s" % (int(pool.address), error))


# ---- sites ---------------------------------------------------------------------------------------


def site_name(site):
    return text(site["name"]) or text(site["place"]["function"]) or "?"


def learner_of(site):
    """What learning knows of it, or None."""
    if int(site["record"]) == 0 or int(site["record"]["learner"]) == 0:
        return None
    return site["record"]["learner"].cast(gdb.lookup_type("tide_learner").pointer()).dereference()


def site_misses(learner):
    plans = [learner["plans"][i] for i in range(int(learner["plan_count"]))]
    return sum(int(plan["table_counts"]["misses"]) + int(plan["code_counts"]["misses"]) for plan in plans)


def plan_types(plan):
    return " ".join(type_name(plan["types"][i]) for i in range(int(plan["type_count"])))


def site_line(site):
    plan, learner = site["plan"].dereference(), learner_of(site)
    number = int(site["record"]["id"]) if int(site["record"]) != 0 else 0
    pinned = number != 0 and bool(site["record"]["pinned"])
    why = str(learner["reason"]).replace("TIDE_REASON_", "") if learner is not None else "-"
    return "%4d  %-20s %-8s %-8s%s %8d  %-16s %-16s %s  %#x" % (
        number, site_name(site)[:20], name_of(KINDS, site["kind"]), name_of(TIERS, plan["tier"]),
        "*" if pinned else " ", site_misses(learner) if learner is not None else 0,
        plan_types(plan) or "-", why, place_words(site["place"]) or "-", int(site.address))


def show_sites():
    print("  ID  NAME                 KIND     TIER       MISSES  TYPES            WHY              "
          "PLACE  ADDRESS")
    for copy in copies():
        for site in copy.sites():
            try:
                print(site_line(site))
            except TORN as error:
                print("   ?  site at %#x: %s" % (int(site.address), error))


# ---- where ---------------------------------------------------------------------------------------


def within(address, first, size):
    return first <= address < first + size


def shape_words(array):
    rank = int(array["tensor"]["ndim"])
    return "[%s]" % ", ".join(str(int(array["tensor"]["shape"][i])) for i in range(min(rank, 64)))


def pool_words(pool):
    core = pool["core"]
    return "pool '%s' (%d) of thread '%s'" % (
        text(core["name"]), int(core["list"]["number"]), text(core["owner"]["name"]))


def slot_words(pool, row, i, address):
    """What a slot says of an address in its memory."""
    slot, record = row["slots"][i], row["records"][i]
    name, size = type_facts(int(row["type"]))
    offset, live = address - int(slot["data"]), i < live_of(row)
    out = "%s slot %d of %s in %s: byte %d of %d, room for %d elements" % (
        "live" if live else "free", i, name, pool_words(pool), offset, int(record["bytes"]),
        int(record["capacity"]))
    if size > 0:
        out += ", element %d" % (offset // size)
    if live and int(slot["array"]) != 0 and int(slot["array"]["tensor"]["data"]) == int(slot["data"]):
        out += ", last an array %s at %#x" % (shape_words(slot["array"]), int(slot["array"]))
    if place_words(record["place"]):
        out += ", acquired at " + place_words(record["place"])
    return out


def where_in_row(pool, row, address):
    slots, count = row["slots"], int(row["count"])
    if within(address, int(slots), count * slots.dereference().type.sizeof):
        i = (address - int(slots)) // slots.dereference().type.sizeof
        return "the words of slot %d of %s in %s" % (i, type_name(row["type"]), pool_words(pool))
    for i in range(count):
        data, size = int(slots[i]["data"]), int(row["records"][i]["bytes"])
        if data != 0 and within(address, data, max(size, 1)):
            return slot_words(pool, row, i, address)
        array = slots[i]["array"]
        if int(array) != 0 and within(address, int(array), array.dereference().type.sizeof):
            return "the header of an array %s of %s, slot %d in %s" % (
                shape_words(array), type_name(row["type"]), i, pool_words(pool))
    return None


def where_in_pool(pool, address):
    core = pool["core"].dereference()
    if within(address, int(pool.address), pool.type.sizeof):
        return "the words and shelves of " + pool_words(pool)
    if within(address, int(core.address), core.type.sizeof):
        return "the cold part of " + pool_words(pool)
    log = core["log"]
    if within(address, int(log["start"]), int(log["end"]) - int(log["start"])):
        entry = log["start"].dereference().type.sizeof
        return "entry %d of the undo log of %s" % ((address - int(log["start"])) // entry, pool_words(pool))
    for row in rows_of(core):
        found = where_in_row(pool, row, address)
        if found is not None:
            return found
    return None


def where_in_site(site, address):
    for part, first in (("", site.address), ("the plan in force of ", site["plan"])):
        if within(address, int(first), first.dereference().type.sizeof):
            return "%s%s site '%s' %s" % (part, name_of(KINDS, site["kind"]), site_name(site),
                                          place_words(site["place"]))
    return None


def where_in_guard(guard, address):
    page = 4096
    if not within(address, int(guard["map"]), int(guard["bytes"]) + page):
        return None
    state = "rewound" if int(guard["state"]) == 2 else "live"
    out = "a guarded array, %s: byte %d of %d, %d of %s in pool '%s'" % (
        state, address - int(guard["data"]), int(guard["used"]), int(guard["n"]),
        type_name(guard["type"]), text(guard["pool"]))
    for word, place in (("acquired", guard["acquired"]), ("rewound", guard["rewound"])):
        if place_words(place):
            out += ", %s at %s" % (word, place_words(place))
    return out


def sites_of_code(first, last):
    """The name of each site that has code there: sites of the same types share it."""
    for copy in copies():
        for site in copy.sites():
            learner = learner_of(site)
            for i in range(int(learner["plan_count"]) if learner is not None else 0):
                if first <= int(learner["plans"][i]["code"]["enter"]) < last:
                    yield "site '%s'" % site_name(site)


def where_in_code(code, address):
    """The file may be gone (TIDEPOOL_KEEP_CODE keeps it): then there is no symbol."""
    first, last = int(code["first"]), int(code["last"])
    if not first <= address < last:
        return None
    symbol = gdb.execute("info symbol %#x" % address, to_string=True).split(" in section ")[0].strip()
    return "compiled code of %s, file %s%s" % (
        ", ".join(sites_of_code(first, last)) or "no site", text(code["path"]),
        "" if symbol.startswith("No symbol") else ": " + symbol)


def bucket_bytes(bucket):
    """As runtime/buffers/store/buckets.h has it."""
    return 64 * (bucket + 1) if bucket < 4 else (5 + bucket % 4) << (bucket // 4 - 1 + 6)


def where_in_buffers(buffers, address):
    for i in range(min(int(buffers["record_count"]), SHOWN)):
        record = buffers["records"][i]
        data, size = int(record["data"]), bucket_bytes(int(record["named"]) & 255)
        if data != 0 and within(address, data, size):
            live = "live" if int(record["generation"]) & 1 else "cached"
            return "a %s buffer of '%s': byte %d of %d" % (live, text(buffers["name"]), address - data, size)
    return None


def where(address):
    """One line for each that has the address. Guards first: they know most."""
    for copy in copies():
        for look, those in ((where_in_guard, copy.guards()), (where_in_pool, copy.pools()),
                            (where_in_code, copy.code_objects()), (where_in_site, copy.sites()),
                            (where_in_buffers, copy.buffers())):
            for one in those:
                try:
                    found = look(one, address)
                except TORN:
                    continue  # torn, or not in the core file
                if found is not None:
                    yield found


# ---- commands ------------------------------------------------------------------------------------


def show_where(argument):
    if not argument.strip():
        raise gdb.GdbError("tidepool where ADDRESS: an expression")
    value = gdb.parse_and_eval(argument)
    if value.type.strip_typedefs().code == gdb.TYPE_CODE_ARRAY:
        value = value.address
    address = int(value) & NO_LIMIT
    for line in list(where(address)) or ["not of Tidepool"]:
        print("%#x: %s" % (address, line))


def make_command(name, run, words, completion=gdb.COMPLETE_NONE):
    class Command(gdb.Command):
        __doc__ = words

        def invoke(self, argument, from_tty):
            run(argument)

    Command(name, gdb.COMMAND_DATA, completion, run is None)


# ---- printers ------------------------------------------------------------------------------------


class Printer:
    """A value as one line, made by a function; where that cannot be read, as that says."""

    def __init__(self, words, value):
        self.words, self.value = words, value

    def to_string(self):
        try:
            return self.words(self.value)
        except TORN as error:
            return "<%s>" % error


def print_pool(pool):
    if int(pool["core"]) == 0:
        return "a pool that refuses"
    core = pool["core"]
    return "%s, depth %d, holds %s, live %s" % (
        pool_words(pool), depth_of(pool), size_words(int(core["memory"]["bytes_held"])),
        size_words(pool_live_bytes(core.dereference())))


def print_pool_pointer(pointer):
    """A pool is too large to be a value of gdb: its pointers are told of instead."""
    return "%#x%s" % (int(pointer), " " + print_pool(pointer) if int(pointer) != 0 else "")


def print_scope(scope):
    if int(scope["pool"]) == 0:
        return "scope that was left"
    if int(scope["pool"]["core"]) == 0:
        return "scope that was refused"
    level = (int(scope["tag"]) & 0xFFFFFF) - 1
    of = " of site '%s'" % site_name(scope["site"]) if int(scope["site"]) != 0 else ""
    return "scope%s, level %d, tier %s, in %s" % (
        of, level, name_of(TIERS, scope["plan"]["tier"]), pool_words(scope["pool"]))


def print_array(array):
    order = "column-major" if int(array["order"]) == 1 else "row-major"
    view = ", a view" if int(array["base"]) != 0 else ""
    return "array %s of %s, %s%s, data %#x" % (
        shape_words(array), type_name(array["type"]), order, view,
        int(array["tensor"]["data"]) + int(array["tensor"]["byte_offset"]))


def print_site(site):
    types = plan_types(site["plan"])
    return "%s site '%s' %s, tier %s%s" % (
        name_of(KINDS, site["kind"]), site_name(site), place_words(site["place"]),
        name_of(TIERS, site["plan"]["tier"]), ", types " + types if types else "")


def print_type(number):
    return "%d (%s)" % (int(number), type_name(int(number)))


PRINTERS = {"tide_scope": print_scope, "tide_array": print_array,
            "tide_site": print_site, "tide_type": print_type}


class TidepoolPrinters:
    """By the name of the type, typedefs included; `disable pretty-printer` knows it as tidepool."""

    name, enabled, subprinters = "tidepool", True, None

    def __call__(self, value):
        kind = value.type.unqualified()
        if kind.code == gdb.TYPE_CODE_PTR and "tide_pool" in (kind.target().name, kind.target().unqualified().tag):
            return Printer(print_pool_pointer, value)
        while kind.name not in PRINTERS and kind.tag not in PRINTERS:
            if kind.code != gdb.TYPE_CODE_TYPEDEF:
                return None
            kind = kind.target()
        return Printer(PRINTERS[kind.name if kind.name in PRINTERS else kind.tag], value)


# A process may have several copies of the library, which bring this file each.
gdb.pretty_printers = [one for one in gdb.pretty_printers if getattr(one, "name", None) != "tidepool"]
gdb.pretty_printers.append(TidepoolPrinters())
make_command("tidepool", None, "Pools, sites and addresses of Tidepool, of a process or of a core file.")
make_command("tidepool pools", lambda _: show_pools(), "The pools of the process, the oldest first: owner, bytes, allocations.")
make_command("tidepool sites", lambda _: show_sites(), "The call sites of the process: tier, types, why. A tier with a * is pinned.")
make_command("tidepool where", show_where, "tidepool where ADDRESS: the pool, slot, array, buffer, site or compiled code that it lies in.",
             gdb.COMPLETE_EXPRESSION)
