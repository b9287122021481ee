"""The exact planner beside MiniMalloc and OmniMalloc's SuperMalloc, in turn in one run, a CSV row for each.

    python memory_exact_peers.py --ours bench_memory_exact [--minimalloc PROGRAM] [--omnimalloc] [--rounds 2]
                                 [--seconds 10] FILE... > results/memory_exact.csv

    python memory_exact_peers.py --planted bench_memory_planted [--minimalloc PROGRAM] [--omnimalloc] [--seeds 3]
                                 [--seconds 1] FILE... > results/memory_planted_peers.csv

The second asks of each packing that bench_memory_planted makes, and of variants of the files, whether it is found below
its capacity in the seconds given, one round; cpu_s is of the decision.

Files are of MiniMalloc's form. A capacity in the name (A.1048576.csv) is the question for MiniMalloc and for our
"capacity" rows; elsewhere MiniMalloc is given the load bound, which is the answer. "smallest" rows minimise. MiniMalloc
is built from its source with its own flags, OmniMalloc installed from PyPI for the Python that runs this script.
SuperMalloc gets 12 threads, since with one its ladder of bounds has one rung; MiniMalloc six times the seconds. All run
on one core. cpu_s is processor time, the least of the rounds with the best end: of the solving alone for neap and
SuperMalloc, of the whole process for MiniMalloc (about 3 ms more).
"""
import argparse, csv, os, re, resource, subprocess, sys, tempfile, time


def load_bound(rows):
    events = [(int(r["lower"]), int(r["size"])) for r in rows] + [(int(r["upper"]), -int(r["size"])) for r in rows]
    load = most = 0
    for _, delta in sorted(events):
        load += delta
        most = max(most, load)
    return most


def ours(program, path, seconds):
    command = [program, "--seconds", str(seconds), path]
    out = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    for r in csv.DictReader(out.splitlines()):
        yield "neap, " + r["question"], float(r["cpu_s"]), r["arena_bytes"], r["status"]


def ours_as_given(program, path, seconds):
    command = [program, "--seconds", str(seconds), "--seeds", "0", "--only", "as given", path]
    out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    for r in csv.DictReader(out.splitlines()):
        yield "neap", float(r["cpu_s"]), r["answer"] == "found"


def minimalloc(program, path, capacity, seconds):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    command = [program, f"--capacity={capacity}", f"--input={path}", "--output=/dev/null"]
    command += [f"--timeout={seconds}s", "--validate"]
    text = subprocess.run(command, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True).stderr
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    height = re.search(r"PASS, height (\d+)", text)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    yield "MiniMalloc, capacity", cpu, height.group(1) if height else "", "feasible" if height else "budget spent"


def supermalloc(path, seconds):
    command = [sys.executable, __file__, "--supermalloc", path, "--seconds", str(seconds)]
    text = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
    cpu, height, proved = text.split()
    yield "SuperMalloc, smallest", float(cpu), height, "optimal" if proved == "True" else "feasible"


def run_supermalloc(path, seconds):
    import omnimalloc
    from omnimalloc.allocators.supermalloc import SupermallocAllocator
    rows = list(csv.DictReader(open(path)))
    first = min(int(r["lower"]) for r in rows)  # it refuses times below 0
    records = tuple(
        omnimalloc.Allocation(i, int(r["size"]), int(r["lower"]) - first, int(r["upper"]) - first)
        for i, r in enumerate(rows)
    )
    begin = time.process_time()
    answer = SupermallocAllocator(timeout=seconds, num_threads=12).solve(records)
    print(time.process_time() - begin, answer.peak, answer.proved_optimal)


def planted(o):
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["kind", "case", "half", "records", "planner", "answer", "cpu_s"])
    with tempfile.TemporaryDirectory() as folder:
        command = [o.planted, "--nodes", "1", "--seeds", str(o.seeds), "--write", folder] + o.files
        made = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
        for case in csv.DictReader(made.splitlines()):
            capacity = int(case["capacity_bytes"])
            path = f"{folder}/{case['case']}.{capacity}.csv"
            answers = list(ours_as_given(o.planted, path, o.seconds))
            if o.minimalloc:
                for _, cpu, height, _ in minimalloc(o.minimalloc, path, capacity, o.seconds):
                    answers.append(("MiniMalloc", cpu, height != ""))
            if o.omnimalloc:
                for _, cpu, height, _ in supermalloc(path, o.seconds):
                    answers.append(("SuperMalloc", cpu, int(height) <= capacity))
            for planner, cpu, found in answers:
                row = [case["kind"], case["case"], case["half"], case["records"], planner]
                out.writerow(row + ["found" if found else "missed", f"{cpu:.4f}"])
            sys.stdout.flush()


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--ours")
    p.add_argument("--planted")
    p.add_argument("--seeds", type=int, default=3)
    p.add_argument("--minimalloc")
    p.add_argument("--omnimalloc", action="store_true")
    p.add_argument("--supermalloc", help=argparse.SUPPRESS)
    p.add_argument("--rounds", type=int, default=2)
    p.add_argument("--seconds", type=float, help="10; with --planted 1")
    p.add_argument("files", nargs="*")
    o = p.parse_args()
    if o.seconds is None:
        o.seconds = 1 if o.planted else 10
    if o.supermalloc:
        return run_supermalloc(o.supermalloc, o.seconds)
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if o.planted:
        return planted(o)
    out = csv.writer(sys.stdout, lineterminator="\n")
    out.writerow(["instance", "records", "planner", "cpu_s", "height_bytes", "load_bound_bytes", "status"])
    for path in o.files:
        rows = list(csv.DictReader(open(path)))
        bound, name = load_bound(rows), os.path.basename(path)
        capacity = re.search(r"\.(\d+)\.csv$", name)
        best = {}
        for _ in range(o.rounds):
            answers = list(ours(o.ours, path, o.seconds))
            if o.minimalloc:
                answers += minimalloc(o.minimalloc, path, capacity.group(1) if capacity else bound, 6 * o.seconds)
            if o.omnimalloc:
                answers += supermalloc(path, o.seconds)
            for planner, cpu, height, status in answers:
                worth = (["optimal", "feasible", "infeasible", "budget spent"].index(status), cpu)
                if planner not in best or worth < best[planner][0]:
                    best[planner] = (worth, cpu, height, status)
        for planner, (_, cpu, height, status) in best.items():
            out.writerow([name, len(rows), planner, f"{cpu:.4f}", height, bound, status])
        sys.stdout.flush()


if __name__ == "__main__":
    main()
