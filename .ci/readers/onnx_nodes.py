"""ONNX's own tests through `cranefold model run`: node cases, older models from PyTorch, and the expanded twins.

Each case passes with its own tolerances, or is left out for a reason; left_out.txt has the names under each. A twin (`…_expanded`: the same op
spelled in primitives) becomes as many kernels as twins.txt says, with the bits of the named op.
"""

import collections
import os
import pathlib
import re
import sys
import tempfile

import numpy
import onnx
from onnx import numpy_helper
from onnx.backend.test.case.node import collect_testcases

import command
from onnx_cases import Case, array

# Cases that are left out, by their names.
LEFT_OUT = [
    (r"_(float8\w+|FLOAT8\w+|E4M3\w*|E5M2\w*|e4m3\w*|e5m2\w*|e8m0|u?int[24]|U?INT[24]|FLOAT4\w+|float4\w+|float6\w+)(_|$)",
     "element types of 8 bits and fewer that the library does not have"),
    (r"string|STRING", "text"),
    (r"sequence|optional", "sequences and optional values"),
]  # fmt: skip

FOLDER = pathlib.Path(__file__).parent


def node_cases():
    for case in collect_testcases(None):
        if case.data_sets is None or not case.data_sets:
            continue
        given, wanted = ([array(value) for value in side] for side in case.data_sets[0])
        names = [value.name for value in case.model.graph.input]
        yield case.name, case.model, dict(zip(names, given)), wanted, case.rtol, case.atol


def pytorch_cases():
    data = pathlib.Path(onnx.__file__).parent / "backend/test/data"
    for path in sorted(data.glob("pytorch-*/*/model.onnx")):
        model = onnx.load(path)
        load = lambda kind: [
            numpy_helper.to_array(onnx.load_tensor(path.parent / f"test_data_set_0/{kind}_{place}.pb"))
            for place in range(len(list((path.parent / "test_data_set_0").glob(f"{kind}_*.pb"))))
        ]
        initialized = {tensor.name for tensor in model.graph.initializer}
        names = [value.name for value in model.graph.input if value.name not in initialized]
        yield "/".join(path.parts[-3:-1]), model, dict(zip(names, load("input"))), load("output"), 1e-3, 1e-7


def is_tensor(value):
    return value is not None and not isinstance(value, (list, str, bytes)) and numpy.asarray(value).dtype.kind not in "OUS"


def collected():
    """The cases, and the names of those that are left out by reason."""
    cases, left_out = [], collections.defaultdict(list)
    for name, model, inputs, outputs, rtol, atol in [*node_cases(), *pytorch_cases()]:
        reason = next((why for pattern, why in LEFT_OUT if re.search(pattern, name)), None)
        if reason is None and not all(is_tensor(value) for value in [*inputs.values(), *outputs]):
            reason = "sequences, text and optional values"
        if reason:
            left_out[reason].append(name)
            continue
        cases.append(Case(name, model, inputs, outputs, rtol, max(atol, 1e-7)))
    return cases, left_out


def main():
    cases, left_out = collected()
    with tempfile.TemporaryDirectory() as folder:
        paths = {case.name: case.save(folder) for case in cases}
        plans = dict(zip(paths, command.each(command.plan, paths.values())))
        wrong, ours = [], []
        for case in cases:
            plan = plans[case.name]
            if isinstance(plan, Exception):
                # A refusal that names what the library does not have is no failure.
                refused = re.search(r"none of the library's|is not known: the file has no static shape|is no tensor", str(plan))
                left_out[f"refused: {refused[0]}"].append(case.name) if refused else wrong.append((case.name, plan))
            elif plan["opaque"]:
                left_out[f"opaque: {', '.join(sorted({node['op'] for node in plan['opaque']}))}"].append(case.name)
            else:
                ours.append(case)
        results = dict(zip([case.name for case in ours], command.each(lambda case: case.run(paths[case.name]), ours)))
        for case in ours:
            found = results[case.name]
            if isinstance(found, Exception):
                wrong.append((case.name, found))
                continue
            faults = [command.difference(a, b, case.rtol, case.atol) for a, b in zip(found, case.outputs)]
            wrong += [(case.name, fault) for fault in faults if fault]
        passed = len(ours) - len({name for name, _ in wrong} & set(results))
        wrong += twins(ours, plans, results)

    listed = "".join(
        f"{reason}\n" + "".join(f"  {name}\n" for name in sorted(names)) for reason, names in sorted(left_out.items())
    )
    path = FOLDER / "left_out.txt"
    if os.environ.get("BLESS"):
        path.write_text(listed)
    if path.read_text() != listed:
        wrong.append((path.name, "other cases are left out than it lists; BLESS=1 writes it anew"))
    for reason, names in sorted(left_out.items()):
        print(f"left out, {reason}: {len(names)}")
    for name, fault in wrong:
        print(f"wrong: {name}: {fault}")
    print(f"onnx: {passed} of {len(ours)} cases pass, {sum(map(len, left_out.values()))} are left out, {len(wrong)} faults")
    needed = re.compile(r"test_(reduce_|arg|softmax|logsoftmax|hardmax|layer_norm|rms_norm|l[12p]norm|instancenorm|group_norm"
                        r"|mvn|batchnorm|global|sce|nllloss)")  # fmt: skip
    missing = [name for names in left_out.values() for name in names if needed.match(name)]
    if missing:
        print(f"onnx: cases of the reductions are left out: {' '.join(missing)}")
    sys.exit(bool(wrong or missing))


def twins(ours, plans, results):
    """The faults of twins: another number of kernels than expected, or other bits than those of the named op."""
    rows = [line.split(maxsplit=2) for line in (FOLDER / "twins.txt").read_text().splitlines()]
    expected = [(re.compile(row[0] + "$"), row[1]) for row in rows if row and row[0] != "#"]
    wrong, count, same = [], collections.Counter(), 0
    named = {case.name: case for case in ours}
    for case in ours:
        twin_of = named.get(re.sub(r"_expanded.*", "", case.name))
        if twin_of is None or twin_of is case:
            continue
        numbers = next((numbers for pattern, numbers in expected if pattern.match(case.name)), None)
        if numbers is None:
            continue
        kernels = len(plans[case.name]["kernels"])
        count[kernels] += 1
        if kernels != int(numbers.split("/")[0]):
            wrong.append((case.name, f"{kernels} kernels; twins.txt expects {numbers}"))
        found, other = results[case.name], results[twin_of.name]
        if isinstance(found, Exception) or isinstance(other, Exception):
            continue
        equal = all(a.tobytes() == b.tobytes() for a, b in zip(found, other))
        same += equal
        if not equal and "/bits" not in numbers:
            wrong.append((case.name, "other bits than the named op"))
    print(f"twins: {sum(count.values())}, kernels {dict(sorted(count.items()))}, {same} with the bits of the named op")
    return wrong


main()
