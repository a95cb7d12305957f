# SPDX-License-Identifier: MIT
"""check.py CHECK PROGRAM ROOT: queries answered by the example and by SQLite, of the same file; or what
the example refuses, with which words."""
import csv, io, os, sqlite3, subprocess, sys

check, program, root = sys.argv[1:]
launcher = os.environ.get("TIDE_TEST_LAUNCHER", "").split()

MESSY = ('id,"the, name","say ""what""",size,ok\r\n1,"a, b","he said ""no""",1.5,true\r\n'
         '2,"two\nlines",,-2,false\r\n\r\n3,"","""",1e3,true\r\n4, spaced ,single,,\r\n5,Ünïcödé,"\r\n",0.25,false')

# Groups come in any order. In SQL true is 1.
QUERIES = {
    "elements": [
        "*",
        "name, mass / density, number % 7 where phase = 'solid' and density < 2 or number > 110",
        "category, phase, count(*), avg(mass), sum(number), min(name), max(electronegativity)",
        "stable, block, count(density), sum(density), min(melting) where period != 3",
        "count(*), count(density), max(name), avg(\"group\") where period > 9",
        "symbol, mass * 2, 0.5, density < 1 where melting is not null and (melting > 1000 or not density < 1)",
        "name, length(name) - number, -(number + 1) * 2 where not stable and \"group\" is null",
    ],
    "weather": [
        "*",
        "weather, count(*), avg(temp_max), min(wind), max(precipitation)",
        "date, temp_max - temp_min where temp_max >= 33 and weather = 'sun'",
        "max(temp_max * 9 / 5 + 32), min(temp_min), avg(wind * wind)",
    ],
    "birdstrikes": [
        "*",
        "\"Phase of flight\", count(*), sum(\"Cost Total $\"), avg(\"Speed IAS in knots\")",
        "\"Origin State\", \"Wildlife Size\", max(\"Cost Repair\") where \"Cost Total $\" > 0",
        "length(\"Airport Name\"), count(*) where \"Speed IAS in knots\" is null",
    ],
    "messy": [
        "*",
        "id, length(\"the, name\"), size * 2 where ok or size < 0",
    ],
}

# The file, arguments, and words of the message.
REFUSED = [
    ("a,b\n1\n", ["a"], ":2: 1 fields, where the first row has 2"),
    ("a,b\n1,\"x\n", ["a"], "a quote is not closed"),
    ("a,b\n1,\"x\"y\n", ["a"], ":2: something stands behind a quoted field"),
    ("a,b\n1,\"x\"\"", ["a"], "a quote is not closed"),
    ("", ["a"], "it is empty"),
    ("\n\n", ["a"], "no row with the names"),
    ("a,b\n1,x\n", ["c"], "query, character 1: there is no column 'c'"),
    ("a,b\n1,x\n", ["a +"], "query, character 4: an expression is missing"),
    ("a,b\n1,x\n", ["a + b"], "query, character 3: the types of both sides differ"),
    ("a,b\n1,x\n", ["sum(b)"], "this wants numbers"),
    ("a,b\n1,x\n", ["a where a"], "'where' wants a condition"),
    ("a,b\n1,x\n", ["a b"], "query, character 3: this is not understood"),
    ("a,b\n1,x\n", ["(" * 200 + "a"], "too deep"),
    ("a,b\n1,x\n", ["a" + "+a" * 500], "too long"),
    ("a,b\n1,x\n", ["length(a)"], "there is no such function of this"),
]


def run(*arguments, text=None):
    answer = subprocess.run([*launcher, program, *arguments], input=text and text.encode(), capture_output=True, timeout=120)
    return answer.returncode, answer.stdout.decode(), answer.stderr.decode()


def number(field):
    """What SQL has of a field, or of a column's fields together."""
    for kind in int, float:
        try:
            return kind(field)
        except ValueError:
            pass
    return {"true": 1, "false": 0}.get(field, field)


def typed(rows):
    """Columns whose fields are all numbers are numbers, else texts; empty fields are null."""
    columns = []
    for fields in zip(*rows):
        values = [None if field == "" else number(field) for field in fields]
        if any(isinstance(value, str) for value in values):
            values = [field or None for field in fields]
        columns.append(values)
    return list(zip(*columns))


def same(a, b):
    if isinstance(a, (int, float)) and isinstance(b, (int, float)):
        return abs(a - b) <= 1e-9 * max(abs(a), abs(b), 1)
    return a == b


def compare(path):
    rows = [row for row in csv.reader(open(path, newline="")) if row]
    base = sqlite3.connect(":memory:")
    names = ", ".join('"' + name.replace('"', '""') + '"' for name in rows[0])
    base.execute(f"create table t ({names})")
    base.executemany(f"insert into t values ({', '.join('?' * len(rows[0]))})", typed(rows[1:]))
    for query in QUERIES[check]:
        items, _, where = query.replace("mass / density", "mass * 1.0 / density").partition(" where ")
        keys = [str(i + 1) for i, item in enumerate(items.split(", ")) if not item.startswith(("count(", "sum(", "avg(", "min(", "max("))]
        grouped = f" group by {', '.join(keys)}" if keys and "(" in items and len(keys) < len(items.split(", ")) else ""
        theirs = base.execute(f"select {items} from t" + (f" where {where}" if where else "") + grouped).fetchall()
        status, answer, said = run(path, query)
        assert status == 0 and not said, (query, said)
        ours = typed(list(csv.reader(io.StringIO(answer, newline="")))[1:])
        order = lambda row: [(value is not None, str(round(value, 6) if isinstance(value, float) else value)) for value in row]
        theirs, ours = sorted(theirs, key=order), sorted(ours, key=order)
        assert len(ours) == len(theirs) and all(same(a, b) for x, y in zip(ours, theirs) for a, b in zip(x, y)), (query, ours[:3], theirs[:3])


if check == "refused":
    for text, arguments, words in REFUSED:
        status, answer, said = run("-", *arguments, text=text)
        assert status == 2 and words in said and not answer, (text, arguments, status, said)
    sys.exit(0)
data = os.environ.get("TIDEPOOL_TEST_DATA", os.path.join(root, "../shared/data"))
path = {"elements": os.path.join(root, "examples/columns/elements.csv"), "messy": "messy.csv",
        "weather": os.path.join(data, "seattle-weather.csv"), "birdstrikes": os.path.join(data, "birdstrikes.csv")}[check]
if check == "messy":
    path = f"/tmp/columns-messy-{os.getpid()}.csv"
    open(path, "w", newline="").write(MESSY)
if not os.path.exists(path):
    print(f"skipped: no {path}")
    sys.exit(77)
compare(path)
if check == "messy":
    os.remove(path)
