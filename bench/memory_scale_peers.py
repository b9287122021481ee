"""The planners of bench_memory_scale beside OmniMalloc's portfolio, in turn in one run, a CSV row for each.

    python memory_scale_peers.py --ours bench_memory_scale [--omnimalloc-limit 20000] [--rounds 2] [--cpu NAME] FILE...
                                 > results/memory_scale.csv

Files are of MiniMalloc's form: id,lower,upper,size. OmniMalloc is installed from PyPI for the Python that runs this
script; its OmniAllocator, a portfolio of greedy planners in C++, is run on files of at most the limit of records.
All run on one core. cpu_s is processor time of planning alone, the least of the rounds; peak_kb the most memory of the
whole process, reading the file included, which for neap's default is measured in a process of its own (--only).
"""
import argparse, csv, datetime, os, subprocess, sys, time


def rows_of(path):
    with open(path) as f:
        return [tuple(int(r[k]) for k in ("lower", "upper", "size")) for r in csv.DictReader(f)]


def load_bound(records):
    events = [(l, s) for l, _, s in records] + [(u, -s) for _, u, s in records]
    load = most = 0
    for _, delta in sorted(events):
        load += delta
        most = max(most, load)
    return most


def ours(program, path):
    def run(*options):
        out = subprocess.run([program, *options, path], stdout=subprocess.PIPE, text=True, check=True).stdout
        return list(csv.DictReader(out.splitlines()))

    alone = run("--only", "default")
    for r in run():
        r = alone[0] if r["planner"] == "default" else r | {"peak_kb": ""}
        yield "neap, " + r["planner"], r["arena_bytes"], r["status"], float(r["cpu_s"]), r["peak_kb"]


def omnimalloc(records, bound):
    import omnimalloc
    from omnimalloc.allocators import OmniAllocator
    asked = [omnimalloc.Allocation(id=i, size=s, start=l, end=u) for i, (l, u, s) in enumerate(records)]
    begin = time.process_time()
    placed = OmniAllocator().allocate(asked)
    spent = time.process_time() - begin
    arena = max(a.offset + a.size for a in placed)
    yield "OmniMalloc, OmniAllocator", arena, "optimal" if arena == bound else "feasible", spent, ""


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--ours", required=True)
    parser.add_argument("--omnimalloc-limit", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cpu", default="")
    parser.add_argument("files", nargs="+")
    arguments = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow("date,cpu,instance,records,planner,bound_bytes,arena_bytes,ratio,status,cpu_s,peak_kb".split(","))
    for path in arguments.files:
        records = rows_of(path)
        count, bound, best = len(records), load_bound(records), {}
        for _ in range(arguments.rounds):
            results = list(ours(arguments.ours, path))
            if count <= arguments.omnimalloc_limit:
                results += omnimalloc(records, bound)
            for planner, arena, status, spent, peak in results:
                if planner not in best or spent < best[planner][2]:
                    best[planner] = arena, status, spent, peak
        del records
        for planner, (arena, status, spent, peak) in best.items():
            name = os.path.basename(path).removesuffix(".csv")
            ratio = f"{int(arena) / bound:.6f}"
            out.writerow([datetime.date.today(), arguments.cpu, name, count, planner, bound, arena, ratio, status,
                          f"{spent:.4f}", peak])
        sys.stdout.flush()


main()
