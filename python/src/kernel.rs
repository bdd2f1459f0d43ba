//! Kernels of specs and regions as Python objects, and reductions by a text without shapes.

use crate::call::{check_memory, compiled, operand, scalar_bytes};
use crate::engine::Engine;
use crate::error::{guarded, of_call, of_compile, of_spec};
use crate::view::{Kind, New, View};
use crate::work::Work;
use crate::{door, dtype, order_of};
use cranefold::spec::{Operand, OutputDesc, Role};
use cranefold::{DType, Input, Kernel, Options, Output, Spec};
use numpy::npyffi::npy_intp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

/// The most kernels that a thread keeps by the texts of `reduce`.
const MOST_TEXTS: usize = 1000;

/// A kernel with the facts that a call needs.
struct Callable {
    kernel: Kernel,
    outputs: Vec<OutputDesc>,
    has_parts: bool,
    work: Work,
}

impl Callable {
    fn new(kernel: Kernel) -> Callable {
        Callable { outputs: kernel.output_desc(), has_parts: kernel.parts() > 1, work: Work::new(), kernel }
    }

    fn spec(&self) -> PyResult<&Spec> {
        self.kernel.spec().ok_or_else(|| crate::error::internal("a kernel without a spec"))
    }
}

/// A compiled spec or region, called with arrays of its shapes.
#[pyclass(name = "Kernel", module = "cranefold", frozen)]
pub struct PyKernel(Callable);

/// Returns true if an output lies in row-major order, without gaps.
fn is_dense(desc: &OutputDesc) -> bool {
    let mut next = 1;
    let in_order = desc.shape.iter().zip(&desc.strides).rev().all(|(&extent, &stride)| {
        let fits = extent <= 1 || stride == next;
        next *= extent as i64;
        fits
    });
    desc.blocks.is_empty() && desc.origin == 0 && in_order
}

fn shown(dims: &[u64]) -> String {
    format!("[{}]", dims.iter().map(u64::to_string).collect::<Vec<_>>().join(","))
}

/// The buffer of an operand in an array: the array has its shape and strides, or is the whole buffer in one axis.
fn buffer(what: &str, operand: &Operand, view: &View<'_>) -> PyResult<(*mut u8, usize)> {
    if view.dtype != operand.dtype() {
        return Err(PyTypeError::new_err(format!(
            "{what} is {}, the kernel takes {}",
            dtype::name(view.dtype),
            dtype::name(operand.dtype())
        )));
    }
    let (lowest, bytes) = view.span();
    let place = operand.placement();
    let is_buffer = view.rank() == 1
        && view.shape[0] as u64 == operand.span_elems()
        && (view.strides[0] == 1 || view.shape[0] <= 1);
    let is_array = view.shape.iter().map(|&extent| extent as u64).eq(operand.shape().iter().copied());
    let has_strides = view
        .strides
        .iter()
        .zip(&place.strides)
        .zip(&view.shape)
        .all(|((own, expected), &extent)| extent <= 1 || own == expected);
    let as_array = place.blocks.is_empty() && is_array && (has_strides || view.shape.contains(&0));
    let before = (operand.span_bytes() as usize).checked_sub(bytes);
    match (as_array, before) {
        // An offset leaves elements before the lowest one, which no kernel touches.
        (true, Some(before)) => Ok((lowest.wrapping_sub(before), bytes + before)),
        _ if is_buffer => Ok((lowest, bytes)),
        _ if !is_array => Err(PyValueError::new_err(format!(
            "{what} has shape {:?}, the kernel takes {}",
            view.shape.as_slice(),
            shown(operand.shape())
        ))),
        _ => Err(PyValueError::new_err(format!(
            "{what} has strides {:?}, the kernel takes {:?} (in elements); compile the spec with @{:?} after the shape, \
             or use cranefold.reduce",
            view.strides.as_slice(),
            place.strides,
            view.strides.as_slice()
        ))),
    }
}

/// Calls a kernel, on this thread alone if `is_alone`.
fn run<'py>(
    py: Python<'py>,
    kernel: &Callable,
    given: &[Bound<'py, PyAny>],
    out: Option<&Bound<'py, PyAny>>,
    is_alone: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let spec = kernel.spec()?;
    if given.len() != spec.inputs().len() {
        return Err(PyTypeError::new_err(format!(
            "{} inputs are given, the kernel takes {}",
            given.len(),
            spec.inputs().len()
        )));
    }
    let is_scalar = |operand: &Operand| matches!(operand.role(), Role::Scalar(_));
    let mut scalars: Vec<(DType, [u8; 8])> = vec![];
    let mut views: Vec<View<'py>> = vec![];
    for (operand, object) in spec.inputs().iter().zip(given) {
        match is_scalar(operand) {
            true => scalars.push((operand.dtype(), scalar_bytes(object, operand.dtype())?)),
            false => views.push(View::of(object)?),
        }
    }
    let mut inputs: Vec<Input<'_>> = vec![];
    let (mut next_view, mut next_scalar) = (views.iter(), scalars.iter());
    for (n, operand) in spec.inputs().iter().enumerate() {
        if is_scalar(operand) {
            let (dtype, bytes) = next_scalar.next().expect("a scalar for each");
            inputs.push(Input::from_bytes(*dtype, &bytes[..dtype.bytes() as usize]));
        } else {
            let view = next_view.next().expect("a view for each");
            let (lowest, bytes) = buffer(&format!("input {n}"), operand, view)?;
            inputs.push(door::input(operand.dtype(), lowest, bytes));
        }
    }

    let outs: Vec<Bound<'py, PyAny>> = match out {
        None => vec![],
        Some(out) => match out.cast::<PyTuple>() {
            Ok(tuple) => tuple.iter().collect(),
            Err(_) => vec![out.clone()],
        },
    };
    if out.is_some() && outs.len() != kernel.outputs.len() {
        return Err(PyTypeError::new_err(format!(
            "{} outputs are given, the kernel has {}",
            outs.len(),
            kernel.outputs.len()
        )));
    }
    let kind = views.first().map_or(Kind::NumPy, |view| view.kind.clone());
    let mut outputs: Vec<Output<'_>> = vec![];
    let mut news: Vec<New<'py>> = vec![];
    let written: Vec<View<'py>> = outs.iter().map(View::of).collect::<PyResult<_>>()?;
    for (n, desc) in kernel.outputs.iter().enumerate() {
        let (data, bytes) = match written.get(n) {
            Some(view) => {
                check_memory(view, views.iter().chain(&written[..n]))?;
                buffer(&format!("output {n}"), &spec.outputs()[n], view)?
            }
            None if spec.reads_old(n) => {
                return Err(PyTypeError::new_err(format!(
                    "output {n} is read before it is written (`old` or `d`): give it with out="
                )));
            }
            None => {
                let flat = [desc.span_elems as npy_intp];
                let shape: Vec<npy_intp> = desc.shape.iter().map(|&extent| extent as npy_intp).collect();
                let new = kind.new_array(py, desc.dtype, if is_dense(desc) { &shape } else { &flat })?;
                let data = new.data;
                news.push(new);
                (data, desc.span_bytes as usize)
            }
        };
        outputs.push(door::output(desc.dtype, data, bytes));
    }
    let executor = match kernel.has_parts && !is_alone {
        true => Some(Engine::current().map_err(of_compile)?.executor()),
        false => None,
    };
    door::run(py, &kernel.work, &kernel.kernel, executor, &inputs, &mut outputs).map_err(of_call)?;
    drop(outputs);
    let mut results = outs;
    for (new, desc) in news.into_iter().zip(&kernel.outputs) {
        let array = new.finish(py)?;
        results.push(if is_dense(desc) { array } else { strided(py, &array, desc)? });
    }
    match results.len() {
        1 => Ok(results.remove(0)),
        _ => Ok(PyTuple::new(py, results)?.into_any()),
    }
}

/// A buffer as the array that a layout makes of it; a buffer in blocks stays as it is.
fn strided<'py>(py: Python<'py>, buffer: &Bound<'py, PyAny>, desc: &OutputDesc) -> PyResult<Bound<'py, PyAny>> {
    if !desc.blocks.is_empty() || !door::is_ndarray(buffer) {
        return Ok(buffer.clone());
    }
    let bytes: Vec<i64> = desc.strides.iter().map(|stride| stride * desc.dtype.bytes() as i64).collect();
    let given = PyDict::new(py);
    given.set_item("shape", PyTuple::new(py, &desc.shape)?)?;
    given.set_item("dtype", buffer.getattr("dtype")?)?;
    given.set_item("buffer", buffer)?;
    given.set_item("offset", desc.origin * desc.dtype.bytes())?;
    given.set_item("strides", PyTuple::new(py, bytes)?)?;
    py.import("numpy")?.getattr("ndarray")?.call((), Some(&given))
}

/// The kernel of a spec or region.
#[pyfunction]
#[pyo3(signature = (spec, /, *, schedule=None, width=None))]
pub fn compile(py: Python<'_>, spec: &str, schedule: Option<&str>, width: Option<u32>) -> PyResult<PyKernel> {
    guarded(|| {
        let spec: Spec = spec.parse().map_err(|error| of_spec(&error))?;
        if schedule.is_none() && width.is_none() {
            return Ok(PyKernel(Callable::new(compiled(py, &spec)?)));
        }
        let schedule = schedule.map(|text| text.parse().map_err(|error| of_compile(cranefold::Error::Schedule(error))));
        let options = Options { schedule: schedule.transpose()?, width };
        let engine = Engine::current().map_err(of_compile)?;
        let kernel = py.detach(|| engine.compiler().compile_with(&spec, &options)).map_err(of_compile)?;
        Ok(PyKernel(Callable::new(kernel)))
    })
}

#[pymethods]
impl PyKernel {
    /// Runs the kernel on arrays, one for each input of the spec, and a number for each scalar.
    #[pyo3(signature = (*inputs, out=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        inputs: &Bound<'py, PyTuple>,
        out: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given: Vec<Bound<'py, PyAny>> = inputs.iter().collect();
        guarded(|| run(py, &self.0, &given, out, false))
    }

    /// The page of reasons: bytes, operations, tree, loop order, schedule and expected time.
    fn explain(&self, py: Python<'_>) -> PyResult<String> {
        guarded(|| py.detach(|| self.0.kernel.explain()).map_err(of_compile))
    }

    /// The text of a stage between the spec and the machine code, or of "all".
    #[pyo3(signature = (stage="all", /))]
    fn dump(&self, py: Python<'_>, stage: &str) -> PyResult<String> {
        guarded(|| py.detach(|| self.0.kernel.dump(stage)).map_err(of_compile))
    }

    /// The canonical text of the spec.
    #[getter]
    fn spec(&self) -> PyResult<String> {
        Ok(self.0.spec()?.to_string())
    }

    /// The schedule of the code, as text.
    #[getter]
    fn schedule(&self) -> String {
        self.0.kernel.schedule().to_string()
    }

    /// The shape of each input, and the name of its dtype; a scalar has the shape ().
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyTuple>, &'static str)>> {
        let inputs = self.0.spec()?.inputs().iter();
        inputs.map(|o| Ok((PyTuple::new(py, o.shape())?, dtype::name(o.dtype())))).collect()
    }

    /// The shape of each output, and the name of its dtype.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Vec<(Bound<'py, PyTuple>, &'static str)>> {
        self.0.outputs.iter().map(|o| Ok((PyTuple::new(py, &o.shape)?, dtype::name(o.dtype)))).collect()
    }

    /// The number of elements of each input's buffer, and the name of its dtype.
    #[getter]
    fn buffers(&self) -> Vec<(u64, &'static str)> {
        self.0.kernel.inputs().map(|(dtype, elems)| (elems, dtype::name(dtype))).collect()
    }

    /// Bytes of elements that a call reads and writes.
    #[getter]
    fn bytes(&self) -> u64 {
        self.0.kernel.facts().bytes
    }

    fn __repr__(&self) -> PyResult<String> {
        Ok(format!("<cranefold.Kernel {}>", self.spec()?))
    }

    fn _repr_html_<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.py().import("cranefold._html")?.call_method1("page", (slf,))
    }
}

/// The kernels of a thread, by the text that their operands were put into.
type Texts = HashMap<String, Rc<Callable>>;

thread_local! {
    static TEXTS: RefCell<Texts> = RefCell::new(HashMap::new());
}

/// Reduces arrays by a spec or region without operands.
#[pyfunction]
#[pyo3(signature = (spec, /, *inputs, out=None, order="logical"))]
pub fn reduce<'py>(
    py: Python<'py>,
    spec: &str,
    inputs: &Bound<'py, PyTuple>,
    out: Option<&Bound<'py, PyAny>>,
    order: &str,
) -> PyResult<Bound<'py, PyAny>> {
    order_of(order)?;
    guarded(|| {
        let words = if without_quotes(spec).contains("order=") { String::new() } else { format!(" order={order}") };
        reduced(py, spec, &words, inputs, out, false)
    })
}

/// Reduces chunks of arrays, on this thread alone, by a spec or region without operands and with more words.
#[pyfunction]
#[pyo3(signature = (spec, words, /, *inputs))]
pub fn reduce_chunk<'py>(
    py: Python<'py>,
    spec: &str,
    words: &str,
    inputs: &Bound<'py, PyTuple>,
) -> PyResult<Bound<'py, PyAny>> {
    guarded(|| reduced(py, spec, &format!(" {words}"), inputs, None, true))
}

/// Reduces arrays by a spec or region without operands; `words`, after a blank, go among its words.
fn reduced<'py>(
    py: Python<'py>,
    spec: &str,
    words: &str,
    inputs: &Bound<'py, PyTuple>,
    out: Option<&Bound<'py, PyAny>>,
    is_alone: bool,
) -> PyResult<Bound<'py, PyAny>> {
    let given: Vec<Bound<'py, PyAny>> = inputs.iter().collect();
    let head = without_quotes(spec);
    let scalars = head.split('{').next().unwrap_or("").split_whitespace().filter(|&word| word == "scalar").count();
    let Some(arrays) = given.len().checked_sub(scalars).filter(|&arrays| arrays > 0) else {
        return Err(PyTypeError::new_err(format!(
            "{} inputs are given; the spec takes at least one array, and {scalars} scalars after it",
            given.len()
        )));
    };
    let mut operands = vec![];
    for object in &given[..arrays] {
        let view = View::of(object)?;
        operands.push(operand(view.dtype, &view.shape, &view.strides, false));
    }
    let key = format!("{} {}", crate::engine::changes(), with_operands(spec, &operands, words)?);
    let known = TEXTS.with(|texts| texts.borrow().get(&key).cloned());
    let kernel = match known {
        Some(kernel) => kernel,
        None => {
            let text = key.split_once(' ').map_or("", |(_, text)| text);
            let spec: Spec = text.parse().map_err(|error| of_spec(&error))?;
            let kernel = Rc::new(Callable::new(compiled(py, &spec)?));
            let dropped = TEXTS.with(|texts| {
                let mut texts = texts.borrow_mut();
                let full = (texts.len() >= MOST_TEXTS).then(|| std::mem::take(&mut *texts));
                texts.insert(key, kernel.clone());
                full
            });
            drop(dropped);
            kernel
        }
    };
    run(py, &kernel, &given, out, is_alone)
}

/// A text with blanks in place of what stands between double quotes.
fn without_quotes(text: &str) -> String {
    let mut inside = false;
    let blank = |c: char| {
        inside ^= c == '"';
        if inside { ' ' } else { c }
    };
    text.chars().map(blank).collect()
}

/// The text of a spec or region with its operands, and with `order` (words after a blank) among its words.
///
/// # Errors
/// `ValueError` if a region names another number of operands.
pub fn with_operands(text: &str, operands: &[String], order: &str) -> PyResult<String> {
    // In Python's strings single quotes are at hand.
    let text = if text.contains('"') { text.to_string() } else { text.replace('\'', "\"") };
    let trimmed = text.trim_start();
    if let Some(rest) = trimmed.strip_prefix("region").filter(|rest| rest.starts_with([' ', '\n', '\t', '{'])) {
        let (names, rest) = names_of(rest);
        if !names.is_empty() && names.len() != operands.len() {
            return Err(PyValueError::new_err(format!(
                "the region names {} operands, {} are given",
                names.len(),
                operands.len()
            )));
        }
        let named = operands.iter().enumerate().map(|(n, operand)| match names.get(n) {
            Some(name) => format!("{name}:{operand}"),
            None => operand.clone(),
        });
        return Ok(format!("region {}{order} {rest}", named.collect::<Vec<_>>().join(", ")));
    }
    let end = end_of_ops(trimmed);
    Ok(format!("{} {}{order}{}", &trimmed[..end], operands.join(", "), &trimmed[end..]))
}

/// The names of a region's operands, and the text after them.
fn names_of(text: &str) -> (Vec<String>, &str) {
    let mut names = vec![];
    let mut rest = text.trim_start();
    loop {
        let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
        let (name, after) = rest.split_at(end);
        let after = after.trim_start();
        if name.is_empty() || ["scalar", "keep_dims"].contains(&name) || after.starts_with('=') {
            return (names, rest);
        }
        names.push(name.to_string());
        match after.strip_prefix(',') {
            Some(more) => rest = more.trim_start(),
            None => return (names, after),
        }
    }
}

/// The end of the list of ops at the head of a spec: its first blank outside parentheses that stands by no comma.
fn end_of_ops(text: &str) -> usize {
    let (mut depth, mut quoted) = (0, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => quoted = !quoted,
            '(' if !quoted => depth += 1,
            ')' if !quoted => depth -= 1,
            c if c.is_whitespace() && depth == 0 && !quoted => {
                let by = |c: Option<char>| c.is_some_and(|c| [',', '('].contains(&c));
                if !by(text[at..].trim_start().chars().next()) && !text[..at].trim_end().ends_with(',') {
                    return at;
                }
            }
            _ => {}
        }
    }
    text.len()
}
