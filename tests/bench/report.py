"""What tests/bench/run makes of its samples: the table with ratios, the targets, and the charts."""

import datetime
import html
import math
import os
import re

TITLES = {
    "exec-true": "true, ms", "exec-sh": "sh -c 'echo hi', ms",
    "spawn": "sh -c 'echo hi' by fork and exec inside a sandbox, ms",
    "exec-8": "8 callers, commands/s", "exec-8-each": "8 callers, each command, ms",
    "exec-32": "32 callers, commands/s", "exec-32-each": "32 callers, each command, ms",
    "stdout-1g": "1 GiB of output in 1 MiB writes, MB/s",
    "stdout-1g-8k": "1 GiB of output in 8 KiB writes, MB/s",
    "put-1k": "write 1 KiB, ms", "get-1k": "read 1 KiB, ms", "put-1m": "write 1 MiB, ms",
    "get-1m": "read 1 MiB, ms", "put-256m": "write 256 MiB, ms", "get-256m": "read 256 MiB, ms",
    "put-1000": "write 1000 files of 1 KiB, ms", "get-1000": "read 1000 files of 1 KiB, ms",
    "start": "create and start, ms", "first": "create to first result, ms", "stop": "stop, ms",
    "destroy": "destroy, ms", "many-100": "100 sandboxes used once, 32 at a time, ms",
    "cpu": "CPU of the host process a command, ms",
    "memory": "growth of its anonymous memory in one piece of work, MiB",
}
BASES = ("host", "engine-api", "reference")


def quantile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(len(values) * q))]


def ratio(p50, work, subject, base):
    if not p50.get((work, base)) or (work, subject) not in p50:
        return None
    return p50[work, subject] / p50[work, base]


def medians(found):
    return {(row["work"], row["subject"]): row["p50"] for row in found}


def table(found):
    p50 = medians(found)
    yield "| work | subject | n | p50 | p95 | p99 | to host | to engine-api | to reference |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for work, title in TITLES.items():
        for row in (row for row in found if row["work"] == work):
            ratios = [ratio(p50, work, row["subject"], base) for base in BASES]
            cells = ["" if value is None else f"{value:.2f}" for value in ratios]
            yield (f"| {title} | {row['subject']} | {row['n']} | {row['p50']:.2f} | "
                   f"{row['p95']:.2f} | {row['p99']:.2f} | {' | '.join(cells)} |")


# ------------------------------------------------------------------------------ targets

# What a subject's median divided by another's has to be: (work, base, limits by subject). A limit
# below is at most, above is at least.
RATIOS = [
    ("exec-sh", "host", "<=", {"sprov-socket": 1.2, "sprov-stream": 1.5}),
    ("exec-sh", "reference", "<=", {"sprov-socket": 1 / 20, "sprov-stream": 1 / 18}),
    ("exec-32", "reference", ">=", {"sprov-socket": 30, "sprov-stream": 28}),
    ("put-1k", "engine-api", "<=", {"sprov-socket": 1 / 5, "sprov-stream": 1 / 2}),
    ("get-1k", "engine-api", "<=", {"sprov-socket": 1 / 15, "sprov-stream": 1 / 5}),
    ("put-256m", "engine-api", "<=", {"sprov-socket": 1 / 1.4, "sprov-stream": 1}),
    ("get-256m", "engine-api", "<=", {"sprov-socket": 1 / 8, "sprov-stream": 1}),
]


def judge(name, value, how, limit):
    if value is None:
        return f"not measured  {name}"
    met = value <= limit if how == "<=" else value >= limit
    return f"{'met' if met else 'MISSED':12}  {name}: {value:.3f}, {how} {limit:.3f}"


def targets(found):
    p50 = medians(found)
    by = {(row["work"], row["subject"]): row for row in found}
    for work, base, how, limits in RATIOS:
        for subject, limit in limits.items():
            yield judge(f"{work} {subject} / {base}", ratio(p50, work, subject, base), how, limit)
    for subject, limit in (("sprov-socket", 0.3), ("sprov-stream", 1)):
        execution, spawn = p50.get(("exec-sh", subject)), p50.get(("spawn", "sprov-socket"))
        own = execution - spawn if execution is not None and spawn is not None else None
        yield judge(f"exec-sh {subject} less the spawn inside, ms", own, "<=", limit)
    yield judge("stdout-1g sprov-socket / host", ratio(p50, "stdout-1g", "sprov-socket", "host"),
                ">=", 0.8)
    yield judge("stdout-1g sprov-stream / engine-api",
                ratio(p50, "stdout-1g", "sprov-stream", "engine-api"), ">=", 1)
    for subject, limit in (("sprov-socket", 0.15), ("sprov-stream", 0.25)):
        yield judge(f"cpu {subject}, ms", p50.get(("cpu", subject)), "<=", limit)
    yield from judge_starts(p50)
    for subject in ("sprov-socket", "sprov-stream"):
        row = by.get(("memory", subject))
        yield judge(f"memory {subject}, most, MiB", row and row["p99"], "<=", 4)
    spread = {subject: by[work, subject]["p99"] / by[work, subject]["p50"]
              for work in ("exec-32-each",) for subject in ("host", "sprov-socket", "sprov-stream")
              if (work, subject) in by}
    for subject in ("sprov-socket", "sprov-stream"):
        yield judge(f"32 callers, p99 / p50, {subject}", spread.get(subject), "<=",
                    spread.get("host", 0))


def judge_starts(p50):
    """Against create and start of the raw API; by stream one engine exec may be added, which in a
    sandbox that has just started takes longer than later."""
    start = p50.get(("start", "engine-api"))
    execution = p50.get(("first", "engine-api"), 0) - (start or 0)
    for subject, extra in (("sprov-socket", 15), ("sprov-stream", execution)):
        first = p50.get(("first", subject))
        over = first - start if first is not None and start is not None else None
        yield judge(f"create to first result, {subject}, ms over create + start", over, "<=", extra)


# ------------------------------------------------------------------------------- charts

CHARTS = {
    "commands": ["exec-sh", "exec-32"], "output": ["stdout-1g", "stdout-1g-8k"],
    "files": ["put-1k", "get-1k", "put-256m", "get-256m"],
    "lifecycle": ["start", "first", "stop", "destroy"], "cost": ["cpu", "memory"],
}
COLOURS = {"host": "#8a8a8a", "engine-api": "#4c78a8", "cli": "#72b7b2", "reference": "#e45756",
           "sprov-socket": "#2f7d32", "sprov-stream": "#7cb342", "sprov-engine": "#c5c35a"}
WIDTH, LABEL, BAR, ROW, HEAD = 720, 110, 460, 20, 30


def bars(rows, top):
    """One work: bars on a logarithmic scale, so that a thousandth is still seen."""
    values = [max(row["p50"], 1e-3) for row in rows]
    low = math.log10(min(values)) - 0.3
    span = max(math.log10(max(values)) - low, 1e-9)
    title = html.escape(TITLES[rows[0]["work"]])
    yield f'<text x="0" y="{top + 18}" class="title">{title}</text>'
    for index, (row, value) in enumerate(zip(rows, values)):
        y = top + HEAD + index * ROW
        width = max(1, BAR * (math.log10(value) - low) / span)
        yield f'<text x="{LABEL - 8}" y="{y + 13}" text-anchor="end">{row["subject"]}</text>'
        yield (f'<rect x="{LABEL}" y="{y + 2}" width="{width:.1f}" height="{ROW - 5}" '
               f'fill="{COLOURS[row["subject"]]}"/>')
        yield f'<text x="{LABEL + width + 6:.1f}" y="{y + 13}">{row["p50"]:.4g}</text>'


def chart(found, works):
    parts, top = [], 0
    for work in works:
        rows = [row for row in found if row["work"] == work]
        if rows:
            parts.extend(bars(rows, top))
            top += HEAD + len(rows) * ROW + 14
    style = ("text{font:12px sans-serif;fill:#222}.title{font-weight:bold;font-size:13px}"
             "@media(prefers-color-scheme:dark){text{fill:#ddd}}")
    body = "\n".join(parts)
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {max(top, 1)}" '
            f'width="{WIDTH}"><style>{style}</style>\n{body}\n</svg>\n')


def draw(found, folder):
    os.makedirs(folder, exist_ok=True)
    for name, works in CHARTS.items():
        with open(os.path.join(folder, f"{name}.svg"), "w", encoding="utf-8") as file:
            file.write(chart(found, works))


# ----------------------------------------------------------------------------- the page

BEGIN, END = "<!-- results -->", "<!-- end of results -->"


def gives_memory_back():
    """Whether free memory goes back to a hypervisor, so that touching it again is slow."""
    try:
        with open("/sys/module/page_reporting/parameters/page_reporting_order",
                  encoding="ascii") as file:
            return int(file.read()) <= 10  # the kernel's largest order; more is off
    except OSError:
        return False


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        model = re.search(r"model name\s*: (.*)", file.read())
    return (f"{os.cpu_count()} cores of {model[1] if model else 'an unknown kind'}, "
            f"Linux {os.uname().release}, load average {os.getloadavg()[0]:.1f} at the start"
            f"{', page reporting on' if gives_memory_back() else ''}")


def write_docs(found, docs, engine, image, where):
    """Replaces what stands between the marks of docs/performance.md, and the charts beside it."""
    draw(found, os.path.join(docs, "performance"))
    page = os.path.join(docs, "performance.md")
    lines = [BEGIN, "",
             f"{datetime.date.today():%d %B %Y}, engine {engine}, `{image}`; {where}.", ""]
    lines += [f"![{name}](performance/{name}.svg)" for name in CHARTS]
    lines += ["", *table(found), "", "What was aimed at:", "", "```", *targets(found), "```", "", END]
    with open(page, encoding="utf-8") as file:
        text = file.read()
    head, tail = text.split(BEGIN)[0], text.split(END)[1]
    with open(page, "w", encoding="utf-8") as file:
        file.write(head + "\n".join(lines) + tail)
