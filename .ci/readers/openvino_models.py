"""OpenVINO IR of both versions through `cranefold model run`, held against OpenVINO's CPU plugin.

The models are ONNX's node cases of the reductions and normalisations that OpenVINO converts, and graphs built with its
sets of ops; each is written as IR version 10, as version 11, and with constants compressed to f16.
"""

import pathlib
import re
import sys
import tempfile

import numpy
import openvino
from onnx.backend.test.case.node import collect_testcases
from openvino import opset1, opset2, opset4, opset5, opset6, opset8, opset12, opset13

import command
from onnx_cases import Case, array

# Where the plugin is wrong: the reasons are rows of the project's table of peers' answers.
PLUGIN_IS_WRONG = [
    (r"reduce_(max|min).*empty_set", "the extreme of nothing is -inf or inf, and the plugin gives the greatest finite number"),
    (r"reduce_mean.*empty_set", "the mean of nothing is NaN, and the plugin gives 0"),
]

CASES = re.compile(
    r"test_(reduce_\w+_(example|empty_set)|arg(max|min)\w*_example|(log)?softmax_(axis_\d|example)|layer_normalization_[34]d_axis1"
    r"|rms_normalization_[34]d_axis1|l[12]normalization\w*|instancenorm_\w*|group_normalization\w*|mvn|batchnorm_\w*"
    r"|global(average|max)pool|gelu_\w*|clip|where_example|slice|squeeze|concat_2d_axis_1)$"
)
core = openvino.Core()
random = numpy.random.default_rng(21)


def constant(values, dtype=numpy.int64):
    return opset13.constant(numpy.asarray(values, dtype))


def built():
    """Models by name, with their inputs in order."""
    x = lambda *shape, dtype=numpy.float32: opset13.parameter(list(shape), dtype, name=f"x{len(shape)}")
    data = lambda *shape: random.normal(size=shape).astype(numpy.float32)
    models = []

    def model(name, results, parameters, inputs):
        results = results if isinstance(results, (list, tuple)) else [results]
        models.append((name, openvino.Model([opset13.result(r) for r in results], parameters, name), inputs))

    for op, build in [
        ("ReduceMin", opset1.reduce_min), ("ReduceMax", opset1.reduce_max), ("ReduceSum", opset1.reduce_sum),
        ("ReduceMean", opset1.reduce_mean), ("ReduceProd", opset1.reduce_prod), ("ReduceL1", opset4.reduce_l1),
        ("ReduceL2", opset4.reduce_l2),
    ]:  # fmt: skip
        for axes, keep in [([1], False), ([-1, 0], True), ([0, 1, 2, 3], False), ([2, 3], True)]:
            p = x(6, 12, 10, 24)
            model(f"{op}{axes}{keep}", build(p, constant(axes), keep), [p], [data(6, 12, 10, 24) * 0.1 + 1])
        p = x(3, 5, dtype=numpy.int32)
        if op not in ("ReduceL2", "ReduceMean"):
            model(f"{op}_i32", build(p, constant([1]), False), [p], [random.integers(-4, 5, (3, 5), dtype=numpy.int32)])
    for op, build in [("ReduceLogicalAnd", opset1.reduce_logical_and), ("ReduceLogicalOr", opset1.reduce_logical_or)]:
        for axes, keep in [([1], False), ([0, 2], True)]:
            p = x(6, 12, 4, dtype=numpy.bool_)
            model(f"{op}{axes}{keep}", build(p, constant(axes), keep), [p], [random.random((6, 12, 4)) < 0.8])
    for axis in (1, 2):
        p = x(3, 7, 50)
        model(f"SoftMax-1_{axis}", opset1.softmax(p, axis), [p], [data(3, 7, 50)])
    for axis in (-1, 0):
        p = x(3, 7, 50)
        model(f"SoftMax-8_{axis}", opset8.softmax(p, axis), [p], [data(3, 7, 50)])
        p = x(3, 7, 50)
        model(f"LogSoftmax_{axis}", opset5.log_softmax(p, axis), [p], [data(3, 7, 50)])
    for across in (False, True):
        for variance in (False, True):
            p = x(2, 3, 4, 5)
            model(f"MVN-2_{across}{variance}", opset2.mvn(p, across, variance, 1e-3), [p], [data(2, 3, 4, 5)])
    for mode in ("INSIDE_SQRT", "OUTSIDE_SQRT"):
        p = x(2, 3, 4, 5)
        model(f"MVN-6_{mode}", opset6.mvn(p, constant([2, 3]), True, 1e-2, mode), [p], [data(2, 3, 4, 5)])
    for mode in ("add", "max"):
        p = x(2, 8, 4, 4)
        model(f"NormalizeL2_{mode}", opset1.normalize_l2(p, constant([1]), 1e-3, mode), [p], [data(2, 8, 4, 4)])
    p = x(2, 8, 4, 4)
    scale, bias = constant(data(8), numpy.float32), constant(data(8), numpy.float32)
    model("GroupNormalization", opset12.group_normalization(p, scale, bias, 4, 1e-4), [p], [data(2, 8, 4, 4)])
    p = x(2, 8, 4, 4)
    mean, var = constant(data(8), numpy.float32), constant(data(8) ** 2 + 0.5, numpy.float32)
    model("BatchNormInference", opset5.batch_norm_inference(p, scale, bias, mean, var, 1e-4), [p], [data(2, 8, 4, 4)])
    for mode in ("max", "min"):
        p = x(4, 9, 11)
        top = opset13.topk(p, constant(1), 1, mode, "value", index_element_type="i64")
        model(f"TopK_{mode}", [top.output(0), top.output(1)], [p], [data(4, 9, 11)])
    p = x(3, 4, 6)
    y = opset13.select(opset13.greater(p, constant(0, numpy.float32)), p, opset13.elu(p, 0.7))
    y = opset13.clamp(opset13.gelu(y, "erf"), -0.4, 0.9)
    model("elements", opset13.reduce_mean(y, constant([2])), [p], [data(3, 4, 6)])
    p = x(3, 4, 6)
    y = opset13.strided_slice(p, constant([0, 1, 5]), constant([3, 4, 0]), constant([1, 2, -1]), [0, 0, 0], [0, 0, 1])
    y = opset13.transpose(opset13.reshape(y, constant([0, -1]), True), constant([1, 0]))
    model("views", opset13.reduce_sum(y, constant([0]), True), [p], [data(3, 4, 6)])
    p = x(3, 4, 6)
    parts = opset13.split(p, constant(2), 3)
    y = opset13.concat([parts.output(2), parts.output(0)], 2)
    y = opset13.multiply(y, opset13.unsqueeze(constant(data(4), numpy.float32), constant([1])))
    model("parts", [y, opset13.convert(opset13.reduce_max(y, constant([0, 2])), "f16")], [p], [data(3, 4, 6)])
    p, q = x(2, 3, 8), opset13.parameter([3, 1], numpy.float32, name="other")
    y = opset13.squared_difference(opset13.power(p, constant(2, numpy.float32)), q)
    y = opset13.divide(y, opset13.add(opset13.sqrt(opset13.reduce_sum(y, constant([-1]), True)), constant(1, numpy.float32)))
    model("normalised", y, [p, q], [data(2, 3, 8), data(3, 1)])
    return models


def converted(folder):
    """ONNX's cases that OpenVINO converts."""
    models = []
    for case in collect_testcases(None):
        if not CASES.match(case.name) or not case.data_sets or "_expanded" in case.name:
            continue
        given, wanted = ([array(value) for value in side] for side in case.data_sets[0])
        names = [value.name for value in case.model.graph.input]
        try:
            known = Case(case.name, case.model, dict(zip(names, given)), list(wanted), 1e-3, 1e-7)
            model = openvino.convert_model(known.save(folder))
            inputs = [known.inputs[value.get_any_name()] for value in model.inputs]
        except Exception:  # OpenVINO's converter does not take every case.
            continue
        models.append((case.name, model, inputs))
    return models


def main():
    left_out, wrong, passed, refused = [], [], 0, []
    with tempfile.TemporaryDirectory() as folder:
        jobs = []
        for title, model, inputs in [*built(), *converted(folder)]:
            reason = next((why for pattern, why in PLUGIN_IS_WRONG if re.search(pattern, title)), None)
            if reason:
                left_out.append((title, reason))
                continue
            for place, value in enumerate(model.inputs):
                value.set_names({f"in{place}"})
            for place, value in enumerate(model.outputs):
                value.set_names({f"out{place}"})
            try:
                compiled = core.compile_model(model, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
                answers = [numpy.array(answer) for answer in compiled(inputs).values()]
            except Exception as error:
                left_out.append((title, f"the plugin refuses it: {str(error).splitlines()[0][:80]}"))
                continue
            path = pathlib.Path(folder, re.sub(r"\W", "_", title))
            for version in ("IR_V10", "IR_V11"):
                if version == "IR_V10" and title.startswith("test_"):
                    continue
                openvino.serialize(model, f"{path}_{version}.xml", f"{path}_{version}.bin", version)
                jobs.append((f"{title} {version}", f"{path}_{version}.xml", inputs, answers, 1e-4))
            openvino.save_model(model, f"{path}_f16.xml", compress_to_fp16=True)
            jobs.append((f"{title} f16", f"{path}_f16.xml", inputs, answers, 2e-2))
        plans = command.each(command.plan, [path for _, path, *_ in jobs])

        def run(job):
            _, path, inputs, answers, _ = job
            inputs = {f"in{place}": value for place, value in enumerate(inputs)}
            return command.run(path, inputs, [answer.dtype for answer in answers])

        ours = []
        for job, plan in zip(jobs, plans):
            if isinstance(plan, Exception):
                wrong.append((job[0], plan))
            elif plan["opaque"]:
                refused.append(f"{job[0]} ({', '.join(sorted({node['op'] for node in plan['opaque']}))})")
            else:
                ours.append(job)
        for job, found in zip(ours, command.each(run, ours)):
            title, _, _, answers, tolerance = job
            faults = [found] if isinstance(found, Exception) else [
                command.difference(a, b, tolerance, tolerance / 10) for a, b in zip(found, answers)
            ]  # fmt: skip
            faults = [fault for fault in faults if fault]
            wrong += [(title, fault) for fault in faults]
            passed += not faults
    for title, reason in left_out:
        print(f"left out: {title}: {reason}")
    print(f"left out, opaque: {' '.join(refused)}")
    for title, fault in wrong:
        print(f"wrong: {title}: {fault}")
    models = len({title.rsplit(' ', 1)[0] for title, *_ in ours})
    print(f"openvino: {passed} of {len(ours)} files of {models} models agree with the plugin, {len(wrong)} faults")
    sys.exit(bool(wrong) or models < 40)


main()
