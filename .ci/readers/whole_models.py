"""Whole models through `cranefold model plan` and `model run`: the light models of the onnx package, and blocks.py.

Of each model the plan takes at least 95 % of the reductions, and an element-wise node beside a reduction is in its kernel
or stands in a reason that the plan prints. The nodes that no kernel computes are cut out: their results become inputs, and
what they take becomes outputs. What is left has the answers of ONNX Runtime, and the same bits where its images come as
NHWC arrays that a Transpose turns.
"""

import collections
import pathlib
import re
import sys
import tempfile
import time

import numpy
import onnx
import onnxruntime
from onnx import helper, shape_inference

import command
from blocks import blocks

BATCH = 2
REDUCTION = re.compile(
    r"Reduce\w+|ArgM\w+|(Log)?Softmax|Hardmax|(Layer|RMS|Group|Instance|Lp|MeanVariance)Normalization|Global\w+Pool$"
)
ELEMENTWISE = {
    "Add", "Sub", "Mul", "Div", "Pow", "Sqrt", "Exp", "Log", "Relu", "Sigmoid", "Erf", "Neg", "Abs", "Reciprocal", "Cast",
    "Where", "Clip", "Greater", "Sum", "BatchNormalization", "Dropout",
}  # fmt: skip
VIEW = {"Reshape", "Transpose", "Unsqueeze", "Squeeze", "Expand", "Slice", "Flatten", "Identity"}


def light():
    folder = pathlib.Path(onnx.__file__).parent / "backend/test/data/light"
    for path in sorted(folder.glob("*.onnx")):
        yield path.stem, onnx.load(path)


def cut(model, opaque):
    """The model without these nodes: its inputs are their results too, its outputs what they take."""
    left = onnx.ModelProto()
    left.CopyFrom(shape_inference.infer_shapes(model, strict_mode=True))
    graph = left.graph
    types = {value.name: value for value in [*graph.value_info, *graph.input, *graph.output]}
    gone = [node for node in graph.node if node.output[0] in opaque]
    for node in gone:
        graph.node.remove(node)
    # What follows from constants alone is no result.
    made = {value.name for value in graph.input} - {tensor.name for tensor in graph.initializer}
    made |= {name for node in gone for name in node.output}
    for node in graph.node:
        made.update(node.output if made.intersection(node.input) else [])
    made -= {value.name for value in graph.input}
    made -= {name for node in gone for name in node.output}
    taken = {name for node in graph.node for name in node.input} | {value.name for value in graph.output}
    unused = [tensor for tensor in graph.initializer if tensor.name not in taken]
    for tensor in unused:
        graph.initializer.remove(tensor)
    kept = [value for value in graph.input if value.name in taken]
    kept += [types[name] for node in gone for name in node.output if name in taken]
    wanted = [value for value in graph.output if value.name in made]
    wanted += [types[name] for node in gone for name in node.input if name in made]
    for field, values in [(graph.input, kept), (graph.output, wanted)]:
        unique = {value.name: value for value in [onnx.ValueInfoProto.FromString(v.SerializeToString()) for v in values]}
        del field[:]
        field.extend(unique.values())
    return left


def nhwc(model, inputs):
    """The twin whose images are NHWC, and its inputs."""
    twin = onnx.ModelProto()
    twin.CopyFrom(model)
    turned, given = [], {}
    initialized = {tensor.name for tensor in twin.graph.initializer}
    for value in twin.graph.input:
        array = inputs.get(value.name)
        if array is None or array.ndim != 4 or value.name in initialized:
            given[value.name] = array
            continue
        name = value.name
        value.name = f"{name}_nhwc"
        array = numpy.ascontiguousarray(array.transpose(0, 2, 3, 1))
        for dim, extent in zip(value.type.tensor_type.shape.dim, array.shape):
            dim.dim_value = extent
        given[value.name] = array
        turned.append(helper.make_node("Transpose", [value.name], [name], perm=[0, 3, 1, 2]))
    nodes = [*turned, *twin.graph.node]
    del twin.graph.node[:]
    twin.graph.node.extend(nodes)
    return twin, {name: array for name, array in given.items() if array is not None}, bool(turned)


def drawn(model):
    """Random inputs; variances are positive."""
    random = numpy.random.default_rng(1)
    variances = {node.input[4] for node in model.graph.node if node.op_type == "BatchNormalization"}
    initialized = {tensor.name for tensor in model.graph.initializer}
    arrays = {}
    for value in model.graph.input:
        if value.name in initialized:
            continue
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        array = random.uniform(0.5, 1.5, shape) if value.name in variances else random.normal(size=shape)
        arrays[value.name] = array.astype(dtype)
    return arrays


def neighbours(model):
    """Pairs of a reduction and an element-wise node beside it or behind views, each by its output, with the values between."""
    makers = {name: node for node in model.graph.node for name in node.output}
    users = collections.defaultdict(list)
    for node in model.graph.node:
        for name in node.input:
            users[name].append(node)
    for node in model.graph.node:
        if not REDUCTION.match(node.op_type):
            continue
        for step, first in [(lambda n: [makers[i] for i in n.input if i in makers], node),
                            (lambda n: [u for o in n.output for u in users[o]], node)]:  # fmt: skip
            found = [(other, [node.output[0]]) for other in step(first)]
            while found:
                other, between = found.pop()
                if other.op_type in ELEMENTWISE:
                    yield node.output[0], other.output[0], {*between, other.output[0]}
                elif other.op_type in VIEW:
                    found += [(next_, [*between, other.output[0]]) for next_ in step(other)]


def check(name, model, folder):
    """The row of a model and its faults."""
    path = pathlib.Path(folder, f"{name}.onnx")
    path.write_bytes(model.SerializeToString())
    starts, faults = [], []
    for _ in range(3):
        start = time.perf_counter()
        plan = command.plan(path)
        starts.append(time.perf_counter() - start)
    opaque = {step["name"] for step in plan["opaque"]}
    reductions = [node.output[0] for node in model.graph.node if REDUCTION.match(node.op_type)]
    kernels = {node: number for number, kernel in enumerate(plan["kernels"]) for node in kernel["nodes"]}
    taken = [output for output in reductions if output in kernels and output not in opaque]
    if len(taken) < 0.95 * len(reductions):
        faults.append(f"{len(taken)} of {len(reductions)} reductions are in kernels: {set(reductions) - set(taken)}")
    reasons = {note.split(" is written: ")[0] for kernel in plan["kernels"] for note in kernel["notes"]}
    beside = apart = 0
    for reduction, other, between in neighbours(model):
        if reduction not in kernels or other not in kernels:
            continue
        beside += 1
        if kernels[reduction] != kernels[other]:
            apart += 1
            if not between & reasons:
                faults.append(f"{other} is not in the kernel of {reduction}, and no reason names {between}")

    left = cut(model, opaque)
    inputs = drawn(left)
    path.write_bytes(left.SerializeToString())
    dtypes = [helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type) for value in left.graph.output]
    found = command.run(path, inputs, dtypes)
    session = onnxruntime.InferenceSession(left.SerializeToString(), providers=["CPUExecutionProvider"])
    for value, a, b in zip(left.graph.output, found, session.run(None, inputs)):
        fault = command.difference(a, b, 1e-4, 1e-5)
        faults += [f"{value.name}: {fault}"] if fault else []
    twin, inputs, has_images = nhwc(left, inputs)
    if has_images:
        path.write_bytes(twin.SerializeToString())
        same = command.run(path, inputs, dtypes)
        faults += [f"{value.name}: other bits as NHWC" for value, a, b in zip(left.graph.output, found, same)
                   if a.tobytes() != b.tobytes()]  # fmt: skip
    row = [name, len(model.graph.node), f"{len(taken)} of {len(reductions)}", len(plan["kernels"]), len(plan["opaque"]),
           f"{plan['bytes_before'] / 1e6:.1f} MB", f"{plan['bytes_after'] / 1e6:.1f} MB", f"{1e3 * min(starts):.0f} ms"]  # fmt: skip
    return row, faults, (beside, apart)


def main():
    models = [*light(), *blocks(BATCH)]
    with tempfile.TemporaryDirectory() as folder:
        results = command.each(lambda item: check(*item, folder), models)
    print("| model | nodes | reductions in kernels | kernels | opaque | bytes before | after | time to plan |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    wrong, beside, apart = [], 0, 0
    for (name, _), result in zip(models, results):
        if isinstance(result, Exception):
            wrong.append(f"{name}: {result!r}")
            continue
        row, faults, (pairs, split) = result
        beside, apart = beside + pairs, apart + split
        print(f"| {' | '.join(map(str, row))} |")
        wrong += [f"{name}: {fault}" for fault in faults]
    for fault in wrong:
        print(f"wrong: {fault}")
    print(f"whole models: {len(models)}, {beside} element-wise nodes beside reductions, {apart} of them in other kernels, "
          f"each for a reason that is printed; {len(wrong)} faults")  # fmt: skip
    sys.exit(bool(wrong))


main()
