"""One case of ONNX's tests: a model and its data."""

import pathlib
import re

import numpy
import onnx
from onnx import numpy_helper

import command

# Operands that shapes and axes are: they have to be known before a model runs. The tests give them as inputs; here they are
# initializers.
KNOWN = {
    "ConstantOfShape": [0], "Dropout": [1, 2], "Expand": [1], "OneHot": [1], "Range": [0, 1, 2], "Reshape": [1],
    "Slice": [1, 2, 3, 4], "Split": [1], "Squeeze": [1], "Tile": [1], "TopK": [1], "Trilu": [1], "Unsqueeze": [1],
}  # fmt: skip

# The names of such operands in twins, where they are operands of arithmetic.
NAMES = {"axes", "shape", "size"}


def array(value):
    """A value of a data set, of which some are messages."""
    return numpy_helper.to_array(value) if isinstance(value, onnx.TensorProto) else value


class Case:
    """A model with its data: inputs by name and outputs in order."""

    def __init__(self, name, model, inputs, outputs, rtol, atol):
        self.name, self.outputs, self.rtol, self.atol = name, outputs, rtol, atol
        self.model = onnx.ModelProto()
        self.model.CopyFrom(model)
        graph = self.model.graph
        known = {name for node in graph.node for name in self.known(node)} | NAMES
        self.inputs = {}
        for value in list(graph.input):
            if value.name not in inputs:
                continue
            if value.name in known:
                graph.initializer.append(numpy_helper.from_array(numpy.asarray(inputs[value.name]), value.name))
                graph.input.remove(value)
            else:
                self.inputs[value.name] = numpy.asarray(inputs[value.name])

    @staticmethod
    def known(node):
        places = [1] if node.op_type.startswith("Reduce") else KNOWN.get(node.op_type, [])
        return [node.input[place] for place in places if place < len(node.input)]

    def save(self, folder):
        path = pathlib.Path(folder, re.sub(r"\W", "_", self.name) + ".onnx")
        path.write_bytes(self.model.SerializeToString())
        return path

    def run(self, path):
        return command.run(path, self.inputs, [numpy.asarray(wanted).dtype for wanted in self.outputs])
