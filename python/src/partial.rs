//! Partial results as Python objects: states are `bytes`, and chunks come as rows of bytes.

use crate::dtype;
use crate::engine::Engine;
use crate::error::{guarded, of_compile, of_spec};
use crate::kernel::with_operands;
use cranefold::{Error, Input, Output, Partial, Spec};
use numpy::PyReadonlyArray1;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::PyBytes;
use std::ops::Range;

/// The partial results of a reduction, or of a box of its kept axes.
#[pyclass(name = "Partial", module = "cranefold", frozen)]
pub struct PyPartial(Partial);

/// A row of bytes.
type Row<'py> = PyReadonlyArray1<'py, u8>;

fn ranges(given: Vec<(u64, u64)>) -> Vec<Range<u64>> {
    given.into_iter().map(|(start, end)| start..end).collect()
}

fn of_partial(error: cranefold::PartialError) -> PyErr {
    of_compile(Error::from(error))
}

/// The bytes of each row.
fn bytes<'a>(rows: &'a [Row<'_>]) -> PyResult<Vec<&'a [u8]>> {
    let one = |row: &'a Row<'_>| row.as_slice().map_err(|_| PyValueError::new_err("a row of bytes has gaps"));
    rows.iter().map(one).collect()
}

/// The spec of a text without operands, and what a graph of chunks needs to know of it.
#[pyclass(name = "Reduction", module = "cranefold", frozen)]
pub struct PyReduction(Spec);

#[pymethods]
impl PyReduction {
    /// Puts operands such as `f32[3,4]` and words such as `axes=[0]` into the text of a spec or region.
    #[new]
    #[pyo3(signature = (text, operands, words, /))]
    fn new(text: &str, operands: Vec<String>, words: &str) -> PyResult<PyReduction> {
        guarded(|| {
            let text = with_operands(text, &operands, &format!(" {words}"))?;
            let spec: Spec = text.parse().map_err(|error| of_spec(&error))?;
            if spec.inputs().len() != operands.len() {
                return Err(PyValueError::new_err(format!(
                    "the spec takes {} inputs, {} arrays are given; write numbers in place of scalars",
                    spec.inputs().len(),
                    operands.len()
                )));
            }
            Ok(PyReduction(spec))
        })
    }

    /// The text with its operands.
    #[getter]
    fn spec(&self) -> String {
        self.0.to_string()
    }

    /// The shape that the operands broadcast to.
    #[getter]
    fn shape(&self) -> Vec<u64> {
        self.0.shape().to_vec()
    }

    /// For each input, its axis at each axis of the shape, or none where it is broadcast.
    #[getter]
    fn places(&self) -> Vec<Vec<Option<usize>>> {
        let of = |input| (0..self.0.rank()).map(|axis| self.0.input_axis(input, axis)).collect();
        (0..self.0.inputs().len()).map(of).collect()
    }

    /// The names of the outputs' dtypes.
    #[getter]
    fn outputs(&self) -> Vec<&'static str> {
        self.0.outputs().iter().map(|o| dtype::name(o.dtype())).collect()
    }
}

impl PyPartial {
    /// A state that was sent without its unused end.
    fn padded(&self, state: &[u8]) -> PyResult<Vec<u8>> {
        let most = self.0.state_bytes();
        let used = self.0.used_bytes(state).map_err(of_partial)?;
        if state.len() < used || state.len() > most {
            let message = format!("a state has {} bytes, this one {used} of at most {most}", state.len());
            return Err(PyValueError::new_err(message));
        }
        // The allocator gives zeros, mostly as pages that nobody has touched: the end of a state stays so.
        let mut padded = vec![0; most];
        padded[..used].copy_from_slice(&state[..used]);
        Ok(padded)
    }

    /// The bytes of a state that have to be sent.
    fn sent<'py>(&self, py: Python<'py>, state: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let used = self.0.used_bytes(state).map_err(of_partial)?;
        Ok(PyBytes::new(py, &state[..used]))
    }
}

#[pymethods]
impl PyPartial {
    /// The partial results of a spec's text; `kept` is a range of each kept axis, or none for all.
    #[new]
    #[pyo3(signature = (spec, kept=None, /))]
    fn new(spec: &str, kept: Option<Vec<(u64, u64)>>) -> PyResult<PyPartial> {
        guarded(|| {
            let spec: Spec = spec.parse().map_err(|error| of_spec(&error))?;
            let compiler = Engine::current().map_err(of_compile)?.compiler();
            let partial = match kept {
                None => compiler.partial(&spec),
                Some(kept) => compiler.partial_of(&spec, &ranges(kept)),
            };
            Ok(PyPartial(partial.map_err(of_compile)?))
        })
    }

    /// The partial results of another box, a range of each kept axis: one of equal extents shares the code.
    fn of_box(&self, kept: Vec<(u64, u64)>) -> PyResult<PyPartial> {
        guarded(|| Ok(PyPartial(self.0.of_box(&ranges(kept)).map_err(of_compile)?)))
    }

    /// The axis that chunks may cut.
    #[getter]
    fn axis(&self) -> PyResult<usize> {
        self.0.axis().map_err(of_compile)
    }

    /// The numbers of the inputs that `shard` takes for a chunk.
    fn reads(&self, chunk: Vec<(u64, u64)>) -> PyResult<Vec<usize>> {
        guarded(|| {
            let shard = self.0.shard_of(&ranges(chunk)).map_err(of_compile)?;
            Ok(shard.inputs().iter().map(|span| span.input).collect())
        })
    }

    /// The numbers of the inputs that `finish` takes.
    #[getter]
    fn finish_reads(&self) -> Vec<usize> {
        self.0.finish_inputs().to_vec()
    }

    /// The most bytes of a state.
    #[getter]
    fn state_bytes(&self) -> usize {
        self.0.state_bytes()
    }

    /// The types and shapes of the outputs.
    #[getter]
    fn outputs(&self) -> Vec<(&'static str, Vec<u64>)> {
        self.0.spec().outputs().iter().map(|o| (dtype::name(o.dtype()), o.shape().to_vec())).collect()
    }

    /// The state of a chunk: a range of each axis, and the bytes of the inputs that it reads, in row-major order.
    fn shard<'py>(
        &self,
        py: Python<'py>,
        chunk: Vec<(u64, u64)>,
        inputs: Vec<Row<'py>>,
    ) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let shard = self.0.shard_of(&ranges(chunk)).map_err(of_compile)?;
            let rows = bytes(&inputs)?;
            let operands = self.0.spec().inputs();
            let dtypes = shard.inputs().iter().map(|span| operands[span.input].dtype());
            let given: Vec<Input<'_>> = dtypes.zip(&rows).map(|(dtype, row)| Input::from_bytes(dtype, row)).collect();
            let mut state = vec![0; self.0.state_bytes()];
            py.detach(|| shard.partial(&given, &mut state)).map_err(of_partial)?;
            self.sent(py, &state)
        })
    }

    /// The bytes of the state of a range of the axis that chunks may cut.
    fn range_bytes(&self, start: u64, end: u64) -> PyResult<usize> {
        guarded(|| self.0.range_bytes(&(start..end)).map_err(of_compile))
    }

    /// The state of neighbouring states, in order.
    fn combine<'py>(&self, py: Python<'py>, states: Vec<PyBackedBytes>) -> PyResult<Bound<'py, PyBytes>> {
        guarded(|| {
            let Some((first, rest)) = states.split_first() else {
                return Err(PyValueError::new_err("no state is given"));
            };
            let mut into = self.padded(first)?;
            py.detach(|| rest.iter().try_for_each(|state| self.0.combine_used(state, &mut into)))
                .map_err(of_partial)?;
            self.sent(py, &into)
        })
    }

    /// The bytes of the outputs of the state of all elements; `inputs` are the inputs that the finish reads.
    #[pyo3(signature = (state, inputs=vec![]))]
    fn finish<'py>(&self, py: Python<'py>, state: &[u8], inputs: Vec<Row<'py>>) -> PyResult<Vec<Bound<'py, PyBytes>>> {
        guarded(|| {
            let state = self.padded(state)?;
            let (rows, spec) = (bytes(&inputs)?, self.0.spec());
            let dtypes = self.0.finish_inputs().iter().map(|&input| spec.inputs()[input].dtype());
            let given: Vec<Input<'_>> = dtypes.zip(&rows).map(|(dtype, row)| Input::from_bytes(dtype, row)).collect();
            if given.len() != inputs.len() {
                return Err(PyValueError::new_err(format!(
                    "{} inputs are given, and {} are read",
                    inputs.len(),
                    given.len()
                )));
            }
            let mut outputs: Vec<Vec<u8>> = spec.outputs().iter().map(|o| vec![0; o.span_bytes() as usize]).collect();
            let places = spec.outputs().iter().zip(&mut outputs);
            let mut places: Vec<Output<'_>> = places.map(|(o, bytes)| Output::from_bytes(o.dtype(), bytes)).collect();
            py.detach(|| self.0.finish(&state, &given, &mut places, 1)).map_err(of_partial)?;
            Ok(outputs.iter().map(|bytes| PyBytes::new(py, bytes)).collect())
        })
    }
}
