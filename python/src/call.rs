//! Calls of functions: their keys, plans and table of recent plans, which is the path of a warm call.
//!
//! A call is described by numbers alone: function, parameters, axes, and of each array its element type, shape and
//! strides. Each thread has a table from such keys to plans, so that a warm call parses no text and takes no lock.

use crate::engine::{self, Engine};
use crate::error::{of_argument, of_call, of_compile, of_spec};
use crate::function::{Asked, Function, check_q};
use crate::select::{self, METHODS, Method, Place, Selection};
use crate::view::{Dims, New, View, row_major};
use crate::work::Work;
use crate::{door, dtype};
use cranefold::{DType, Input, Kernel, Output, Spec};
use numpy::npyffi::npy_intp;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyTuple};
use smallvec::SmallVec;
use std::cell::RefCell;
use std::rc::Rc;

/// The most axes of an array.
const MOST_AXES: usize = 63;

/// The sets of the table; each has two plans.
const SETS: usize = 512;

/// A call's description as numbers.
type Key = SmallVec<[u64; 32]>;

/// The kernel of a call with all that a warm call needs.
struct Plan {
    /// The kernel; `None` if no output has an element.
    kernel: Option<Kernel>,
    /// Element type and shape of each output.
    outputs: SmallVec<[(DType, SmallVec<[npy_intp; 6]>); 2]>,
    initial: Option<DType>,
    tells_nothing: bool,
    work: Work,
    has_parts: bool,
}

/// A plan with its key.
type Entry = (Key, Rc<Plan>);

thread_local! {
    /// The plans of recent calls of this thread.
    static TABLE: RefCell<Vec<Option<Entry>>> = const { RefCell::new(Vec::new()) };
}

/// The place of a key in the table.
#[inline]
fn set_of(key: &[u64]) -> usize {
    let mix = |hash: u64, word: &u64| (hash.rotate_left(5) ^ word).wrapping_mul(0x517c_c1b7_2722_0a95);
    (key.iter().fold(0, mix) >> 40) as usize % SETS * 2
}

/// The plan of a key, if the table has it.
#[inline]
fn known(key: &Key) -> Option<Rc<Plan>> {
    TABLE.with(|table| {
        let table = table.borrow();
        let set = set_of(key);
        let pair = table.get(set..set + 2)?;
        let fits = |entry: &&Option<Entry>| entry.as_ref().is_some_and(|(known, _)| known == key);
        pair.iter().find(fits)?.as_ref().map(|(_, plan)| plan.clone())
    })
}

/// Keeps a plan in place of the older of its set.
fn keep(key: Key, plan: Rc<Plan>) {
    let dropped = TABLE.with(|table| {
        let mut table = table.borrow_mut();
        if table.is_empty() {
            table.resize_with(2 * SETS, || None);
        }
        let set = set_of(&key);
        table.swap(set, set + 1);
        table[set].replace((key, plan))
    });
    drop(dropped);
}

/// The arguments of a call, as Python gives them.
pub struct Arguments<'a, 'py> {
    pub function: Function,
    pub skips_nan: bool,
    pub x: &'a Bound<'py, PyAny>,
    pub axis: Option<&'a Bound<'py, PyAny>>,
    pub keepdims: bool,
    pub dtype: Option<&'a Bound<'py, PyAny>>,
    pub out: Option<&'a Bound<'py, PyAny>>,
    pub initial: Option<&'a Bound<'py, PyAny>>,
    pub mask: Option<&'a Bound<'py, PyAny>>,
    pub parameter: f64,
    pub second: f64,
    pub in_memory_order: bool,
    pub others: [Option<&'a Bound<'py, PyAny>>; 2],
}

/// The reduced axes, a bit for each.
#[inline]
fn axes_of(axis: Option<&Bound<'_, PyAny>>, rank: usize) -> PyResult<u64> {
    let Some(axis) = axis else { return Ok((1 << rank) - 1) };
    if let Ok(tuple) = axis.cast::<PyTuple>() {
        let mut all = 0;
        for axis in tuple.iter() {
            let bit = 1 << one_axis(&axis, rank)?;
            if all & bit != 0 {
                let all = if tuple.len() <= 8 { format!(" in {tuple}") } else { String::new() };
                return Err(PyValueError::new_err(format!("axis {axis} is listed twice{all}")));
            }
            all |= bit;
        }
        return Ok(all);
    }
    Ok(1 << one_axis(axis, rank)?)
}

#[inline]
fn one_axis(axis: &Bound<'_, PyAny>, rank: usize) -> PyResult<usize> {
    let number: i64 = axis.extract().map_err(|_| {
        let shown = axis.repr().map_or("?".into(), |text| text.to_string());
        match axis.is_instance_of::<PyInt>() {
            true => axis_error(axis.py(), &format!("axis {shown} is out of range for rank {rank}")),
            false => PyTypeError::new_err(format!("axis is {shown}, not an integer, a tuple of integers or None")),
        }
    })?;
    let at = if number < 0 { number + rank as i64 } else { number };
    if (0..rank as i64).contains(&at) {
        return Ok(at as usize);
    }
    Err(axis_error(axis.py(), &format!("axis {number} is out of range for rank {rank}")))
}

/// NumPy's `AxisError`, which is a `ValueError` and an `IndexError`.
#[cold]
fn axis_error(py: Python<'_>, text: &str) -> PyErr {
    let make = || py.import("numpy.exceptions")?.getattr("AxisError")?.call1((text,));
    match make() {
        Ok(error) => PyErr::from_value(error),
        Err(_) => PyValueError::new_err(text.to_string()),
    }
}

/// Appends an array's description to a key.
#[inline]
fn describe(key: &mut Key, view: &View<'_>) {
    key.push((view.dtype as u64) << 8 | view.rank() as u64);
    key.extend(view.shape.iter().map(|&extent| extent as u64));
    key.extend(view.strides.iter().map(|&stride| stride as u64));
}

/// Calls a function.
///
/// # Errors
/// The exceptions of the module `error`, `TypeError` and `ValueError` for wrong arguments.
#[inline]
pub fn call<'py>(py: Python<'py>, given: &Arguments<'_, 'py>) -> PyResult<Bound<'py, PyAny>> {
    let x = View::of(given.x)?;
    let rank = x.rank();
    if rank > MOST_AXES {
        return Err(PyValueError::new_err(format!("rank {rank} is above the limit of {MOST_AXES}")));
    }
    let axes = axes_of(given.axis, rank)?;
    let asked = given.dtype.map(dtype::asked).transpose()?;
    let further = |name: &str, object: Option<&Bound<'py, PyAny>>| {
        object.map(|object| View::of(object).map_err(|error| of_argument(py, name, error))).transpose()
    };
    let operands = Operands {
        x,
        mask: further("where", given.mask)?,
        others: [further(given.function.weight(), given.others[0])?, further("bias", given.others[1])?],
        out: further("out", given.out)?,
    };
    let skips_nan = given.skips_nan && operands.x.dtype.is_float();
    match given.function {
        Function::Median if skips_nan => return selected(py, given, &operands, axes, Selection::Median),
        Function::Quantile if skips_nan || given.second != 0.0 => {
            check_q(given.parameter)?;
            let method = METHODS.get(given.second as usize).map_or(Method::Linear, |&(_, method)| method);
            return selected(py, given, &operands, axes, Selection::Quantile(given.parameter, method));
        }
        _ => {}
    }

    let positions =
        given.skips_nan && operands.x.dtype.is_float() && matches!(given.function, Function::ArgMax | Function::ArgMin);
    let plan = planned(py, given, &operands, axes, asked, false)?;
    let result = run(py, given, &operands, &plan)?;
    if !positions || are_found(py, &operands.x, axes, &result)? {
        return Ok(result);
    }
    let plan = planned(py, given, &operands, axes, asked, true)?;
    run(py, given, &operands, &plan)
}

/// The plan of a call: that of the table, or a new one.
#[inline]
fn planned(
    py: Python<'_>,
    given: &Arguments<'_, '_>,
    operands: &Operands<'_>,
    axes: u64,
    asked: Option<DType>,
    finds_infinities: bool,
) -> PyResult<Rc<Plan>> {
    let mut key = Key::new();
    let flags = [
        finds_infinities,
        given.skips_nan,
        given.keepdims,
        given.in_memory_order,
        given.initial.is_some(),
        operands.mask.is_some(),
        operands.others[0].is_some(),
        operands.others[1].is_some(),
        operands.out.is_some(),
    ];
    let flags = flags.iter().fold(0, |all, &flag| all << 1 | u64::from(flag));
    let result = asked.map_or(255, |dtype| dtype as u64);
    key.push(given.function as u64 | flags << 8 | result << 20 | u64::from(engine::changes()) << 32);
    key.extend([axes, given.parameter.to_bits(), given.second.to_bits()]);
    describe(&mut key, &operands.x);
    operands.further().chain(&operands.out).for_each(|view| describe(&mut key, view));
    match known(&key) {
        Some(plan) => Ok(plan),
        None => {
            let plan = Rc::new(plan(py, given, operands, axes, asked, finds_infinities)?);
            keep(key, plan.clone());
            Ok(plan)
        }
    }
}

/// The elements of an array as bytes.
fn place_of<'a>(view: &'a View<'_>) -> Place<&'a [u8]> {
    let (lowest, bytes) = view.span();
    let first = view.data.addr() - lowest.addr();
    Place { bytes: door::bytes(lowest, bytes), first, shape: view.shape.clone(), strides: view.strides.clone() }
}

/// Returns true if positions found without NaN are right in every slice: none is that of a NaN.
fn are_found(py: Python<'_>, x: &View<'_>, axes: u64, found: &Bound<'_, PyAny>) -> PyResult<bool> {
    let found = View::of(found)?;
    // JAX may have narrowed the positions.
    if found.dtype != DType::I64 {
        return Ok(false);
    }
    let (dtype, from, places) = (x.dtype, place_of(x), place_of(&found));
    Ok(py.detach(|| !select::names_nan(dtype, &from, axes, &places)))
}

/// Calls a median or quantile that no kernel has.
#[cold]
fn selected<'py>(
    py: Python<'py>,
    given: &Arguments<'_, 'py>,
    arrays: &Operands<'py>,
    axes: u64,
    selection: Selection,
) -> PyResult<Bound<'py, PyAny>> {
    let (x, dtype) = (&arrays.x, arrays.x.dtype);
    let result = if dtype.is_float() { dtype } else { DType::F64 };
    let (shape, skips_nan) = (shape_of(x, axes, given.keepdims), given.skips_nan);
    let from = place_of(x);
    if let (Some(out), Some(given)) = (&arrays.out, given.out) {
        check_out(out, &shape, result)?;
        check_memory(out, [x])?;
        let (lowest, bytes) = out.span();
        let (first, strides) = (out.data.addr() - lowest.addr(), out.strides.clone());
        let mut to = Place { bytes: door::bytes_mut(lowest, bytes), first, shape, strides };
        py.detach(|| select::write(selection, skips_nan, dtype, &from, axes, &mut to));
        return Ok(given.clone());
    }
    let extents: SmallVec<[npy_intp; 6]> = shape.iter().map(|&extent| extent as npy_intp).collect();
    let new = x.kind.new_array(py, result, &extents)?;
    let bytes = shape.iter().product::<i64>() as usize * result.bytes() as usize;
    let strides = row_major(&shape);
    let mut to = Place { bytes: door::bytes_mut(new.data, bytes), first: 0, shape, strides };
    py.detach(|| select::write(selection, skips_nan, dtype, &from, axes, &mut to));
    new.finish(py)
}

/// The shape of a result without the reduced axes, or with extents of 1 for them.
fn shape_of(x: &View<'_>, axes: u64, keepdims: bool) -> Dims {
    let extents = x.shape.iter().enumerate().map(|(axis, &extent)| (axes >> axis & 1 != 0, extent));
    match keepdims {
        true => extents.map(|(is_reduced, extent)| if is_reduced { 1 } else { extent }).collect(),
        false => extents.filter(|&(is_reduced, _)| !is_reduced).map(|(_, extent)| extent).collect(),
    }
}

/// Refuses a mask that is not bool.
fn check_mask(mask: &View<'_>) -> PyResult<()> {
    match mask.dtype {
        DType::Bool => Ok(()),
        other => Err(PyTypeError::new_err(format!("where is {}, not bool", dtype::name(other)))),
    }
}

/// The arrays of a call.
struct Operands<'py> {
    x: View<'py>,
    mask: Option<View<'py>>,
    others: [Option<View<'py>>; 2],
    out: Option<View<'py>>,
}

impl<'py> Operands<'py> {
    /// The arrays read beside the first, in the order of the kernel's inputs.
    fn further(&self) -> impl Iterator<Item = &View<'py>> {
        self.mask.iter().chain(self.others.iter().flatten())
    }
}

/// Makes the plan of a call.
#[cold]
fn plan(
    py: Python<'_>,
    given: &Arguments<'_, '_>,
    arrays: &Operands<'_>,
    axes: u64,
    asked: Option<DType>,
    finds_infinities: bool,
) -> PyResult<Plan> {
    let (function, x) = (given.function, &arrays.x);
    arrays.mask.as_ref().map_or(Ok(()), check_mask)?;
    let is_reduced = |axis: usize| axes >> axis & 1 != 0;
    let extents = || x.shape.iter().copied().enumerate();
    let reduced: i64 = extents().filter(|&(axis, _)| is_reduced(axis)).map(|(_, extent)| extent).product();
    let text = Asked {
        function,
        skips_nan: given.skips_nan,
        dtype: x.dtype,
        result: asked,
        has_mask: arrays.mask.is_some(),
        has_initial: given.initial.is_some(),
        parameter: given.parameter,
        second: given.second,
        others: [0, 1].map(|n| arrays.others[n].as_ref().map(|view| view.dtype)),
        count: reduced,
        finds_infinities,
    }
    .text()?;

    let kept = shape_of(x, axes, false);
    let shape = if function.writes_elements() { x.shape.clone() } else { shape_of(x, axes, given.keepdims) };
    let is_empty = shape.contains(&0);
    if reduced == 0 && !is_empty && function.needs_elements() && given.initial.is_none() {
        return Err(PyValueError::new_err(format!(
            "{} of nothing: the reduced axes of shape {:?} have no element{}",
            function.name(),
            x.shape.as_slice(),
            if matches!(function, Function::Max | Function::Min) { " and no initial= is given" } else { "" }
        )));
    }

    let rank = x.rank();
    let with_axis = axes == 0;
    let reduced_axes: Vec<usize> =
        if with_axis { vec![0] } else { (0..rank).filter(|&axis| is_reduced(axis)).collect() };
    let mut operands = vec![operand(x.dtype, &x.shape, &x.strides, with_axis)];
    for (n, view) in arrays.further().enumerate() {
        let name = match n {
            _ if arrays.mask.is_some() => "where",
            0 if arrays.others[0].is_some() => function.weight(),
            _ => "bias",
        };
        let (mut shape, mut strides) = placed(name, view, x, &reduced_axes, arrays.mask.is_none() && !with_axis)?;
        // What is reduced itself has all axes, else it would be a value of the slice.
        let is_reduced_too = arrays.mask.is_some() || function == Function::Average;
        if is_reduced_too {
            while shape.len() < rank {
                shape.insert(0, 1);
                strides.insert(0, 0);
            }
            shape = x.shape.clone();
        }
        operands.push(operand(view.dtype, &shape, &strides, is_reduced_too && with_axis));
    }
    let mut at = String::new();
    let mut outputs: Vec<String> = text.outputs.iter().map(|(value, _)| value.clone()).collect();
    if let Some(out) = &arrays.out {
        check_out(out, &shape, text.outputs[0].1)?;
        let drops = given.keepdims && !function.writes_elements();
        let strides = out.strides.iter().enumerate().filter(|&(axis, _)| !(drops && is_reduced(axis)));
        let strides: Dims = strides.map(|(_, &stride)| stride).collect();
        let places = if function.writes_elements() { &shape } else { &kept };
        let layout = operand(out.dtype, places, &strides, with_axis && function.writes_elements());
        at = layout.find('@').map_or(String::new(), |place| format!(" {}", &layout[place..]));
        outputs[0] += &at;
    }
    let axes = if reduced_axes.is_empty() { vec![0] } else { reduced_axes };
    let axes = axes.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
    let order = if given.in_memory_order { "memory" } else { "logical" };
    let accumulator = if text.in_f64 { " acc=f64" } else { "" };
    let scalar = text.initial.map_or(String::new(), |dtype| format!(" scalar init:{dtype}"));
    let spec = text.row.map(|row| {
        let output = if at.is_empty() { String::new() } else { format!(" ->{at}") };
        format!("{row} {} axes=[{axes}] order={order}{output}", operands[0])
    });
    let region = format!(
        "region {} axes=[{axes}] order={order}{accumulator}{scalar} {{ {}{} }}",
        operands.join(", "),
        text.definitions,
        outputs.join(", ")
    );
    let shape: SmallVec<[npy_intp; 6]> = shape.iter().map(|&extent| extent as npy_intp).collect();
    let outputs = text.outputs.iter().map(|&(_, dtype)| (dtype, shape.clone())).collect();
    let mut plan = Plan {
        kernel: None,
        outputs,
        initial: text.initial,
        tells_nothing: text.tells_nothing,
        work: Work::new(),
        has_parts: false,
    };
    if !is_empty {
        let spec: Spec = spec.unwrap_or(region).parse().map_err(|error| of_spec(&error))?;
        let kernel = compiled(py, &spec)?;
        plan.has_parts = kernel.parts() > 1;
        plan.kernel = Some(kernel);
    }
    Ok(plan)
}

/// The kernel of a spec; other Python threads run while it is compiled.
///
/// # Errors
/// As [`Engine::compile`].
pub fn compiled(py: Python<'_>, spec: &Spec) -> PyResult<Kernel> {
    let engine = Engine::current().map_err(of_compile)?;
    py.detach(|| engine.compile(spec)).map_err(of_compile)
}

/// The text of an operand, after an axis of extent 1 if `with_axis`.
pub fn operand(dtype: DType, shape: &[i64], strides: &[i64], with_axis: bool) -> String {
    let list = |dims: &[i64]| {
        let first = with_axis.then(|| "1".to_string());
        first.into_iter().chain(dims.iter().map(i64::to_string)).collect::<Vec<_>>().join(",")
    };
    let mut next = 1;
    let is_dense = shape.iter().zip(strides).rev().all(|(&extent, &stride)| {
        let fits = extent == 1 || stride == next;
        next *= extent;
        fits
    });
    let at = if is_dense || shape.contains(&0) { String::new() } else { format!("@({})", list(strides)) };
    format!("{dtype}[{}]{at}", list(shape))
}

/// The shape and strides of a further array as the region takes them: broadcast to the first, or along the reduced axes.
fn placed(name: &str, view: &View<'_>, x: &View<'_>, reduced: &[usize], along: bool) -> PyResult<(Dims, Dims)> {
    let of_axes = || reduced.iter().map(|&axis| x.shape[axis]).eq(view.shape.iter().copied());
    if along && view.shape[..] != x.shape[..] && of_axes() {
        let (mut shape, mut strides) = (Dims::from_elem(1, x.rank()), Dims::from_elem(0, x.rank()));
        for (n, &axis) in reduced.iter().enumerate() {
            (shape[axis], strides[axis]) = (view.shape[n], view.strides[n]);
        }
        return Ok((shape, strides));
    }
    let fits = view.rank() <= x.rank()
        && view.shape.iter().rev().zip(x.shape.iter().rev()).all(|(&own, &extent)| own == extent || own == 1);
    match fits {
        true => Ok((view.shape.clone(), view.strides.clone())),
        false => Err(PyValueError::new_err(format!(
            "{name} of shape {:?} does not broadcast to shape {:?}",
            view.shape.as_slice(),
            x.shape.as_slice()
        ))),
    }
}

/// Refuses an output of another shape or type, or that may not be written.
fn check_out(out: &View<'_>, shape: &[i64], dtype: DType) -> PyResult<()> {
    if out.dtype != dtype {
        return Err(PyTypeError::new_err(format!(
            "out is {}, and the result is {}",
            dtype::name(out.dtype),
            dtype::name(dtype)
        )));
    }
    if out.shape[..] != *shape {
        return Err(PyValueError::new_err(format!(
            "out has shape {:?}, and the result has shape {shape:?}",
            out.shape.as_slice()
        )));
    }
    match out.shape.iter().zip(&out.strides).position(|(&extent, &stride)| extent > 1 && stride == 0) {
        Some(axis) if !out.shape.contains(&0) => Err(PyValueError::new_err(format!(
            "out has stride 0 along axis {axis}, where {} results would go to one element",
            out.shape[axis]
        ))),
        _ => Ok(()),
    }
}

/// Refuses an output that may not be written, or shares memory with an array that is read.
pub fn check_memory<'v, 'py: 'v>(out: &View<'py>, read: impl IntoIterator<Item = &'v View<'py>>) -> PyResult<()> {
    if out.is_copy {
        return Err(PyTypeError::new_err("out is no array: a number or list has no memory that a result can go to"));
    }
    if !out.writable {
        return Err(PyValueError::new_err("out is read-only"));
    }
    let (low, bytes) = out.span();
    let (low, high) = (low.addr(), low.addr() + bytes);
    for view in read {
        let (start, bytes) = view.span();
        if start.addr() < high && low < start.addr() + bytes {
            return Err(PyValueError::new_err("out shares memory with an array that is read; pass another out"));
        }
    }
    Ok(())
}

/// The bytes of a scalar, in the byte order of the machine.
///
/// # Errors
/// `TypeError` if it is no number of the kind, `OverflowError` if it is out of range.
pub fn scalar_bytes(value: &Bound<'_, PyAny>, dtype: DType) -> PyResult<[u8; 8]> {
    let mut bytes = [0; 8];
    let mut put = |given: &[u8]| bytes[..given.len()].copy_from_slice(given);
    match dtype {
        DType::Bool => put(&[u8::from(value.is_truthy()?)]),
        DType::I8 => put(&value.extract::<i8>()?.to_ne_bytes()),
        DType::I16 => put(&value.extract::<i16>()?.to_ne_bytes()),
        DType::I32 => put(&value.extract::<i32>()?.to_ne_bytes()),
        DType::I64 => put(&value.extract::<i64>()?.to_ne_bytes()),
        DType::U8 => put(&value.extract::<u8>()?.to_ne_bytes()),
        DType::U16 => put(&value.extract::<u16>()?.to_ne_bytes()),
        DType::U32 => put(&value.extract::<u32>()?.to_ne_bytes()),
        DType::U64 => put(&value.extract::<u64>()?.to_ne_bytes()),
        DType::F32 => put(&(value.extract::<f64>()? as f32).to_ne_bytes()),
        DType::F64 => put(&value.extract::<f64>()?.to_ne_bytes()),
        other => return Err(PyTypeError::new_err(format!("a scalar of {other} is not supported"))),
    }
    Ok(bytes)
}

/// Runs a plan.
#[inline]
fn run<'py>(
    py: Python<'py>,
    given: &Arguments<'_, 'py>,
    arrays: &Operands<'py>,
    plan: &Plan,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(out) = &arrays.out {
        check_memory(out, std::iter::once(&arrays.x).chain(arrays.further()))?;
    }
    let initial = match (given.initial, plan.initial) {
        (Some(value), Some(dtype)) => {
            let bytes = scalar_bytes(value, dtype).map_err(|error| of_argument(py, "initial", error))?;
            Some((dtype, bytes))
        }
        (Some(_), None) => {
            return Err(PyTypeError::new_err(format!("{} takes no initial", given.function.name())));
        }
        _ => None,
    };
    let visible = plan.outputs.len() - usize::from(plan.tells_nothing);
    let mut news: SmallVec<[New<'py>; 2]> = SmallVec::new();
    let mut outputs: SmallVec<[Output<'_>; 2]> = SmallVec::new();
    let mut hidden = vec![];
    for (n, (dtype, shape)) in plan.outputs.iter().enumerate() {
        let elems = shape.iter().product::<npy_intp>() as usize;
        let (data, bytes) = if n == 0
            && let Some(out) = &arrays.out
        {
            out.span()
        } else if n < visible {
            let new = arrays.x.kind.new_array(py, *dtype, shape)?;
            let data = new.data;
            news.push(new);
            (data, elems * dtype.bytes() as usize)
        } else {
            hidden = vec![0u8; elems];
            (hidden.as_mut_ptr(), elems)
        };
        outputs.push(door::output(*dtype, data, bytes));
    }
    if let Some(kernel) = &plan.kernel {
        let mut inputs: SmallVec<[Input<'_>; 4]> = SmallVec::new();
        for view in std::iter::once(&arrays.x).chain(arrays.further()) {
            let (lowest, bytes) = view.span();
            inputs.push(door::input(view.dtype, lowest, bytes));
        }
        if let Some((dtype, bytes)) = &initial {
            inputs.push(Input::from_bytes(*dtype, &bytes[..dtype.bytes() as usize]));
        }
        let executor = match plan.has_parts {
            true => Some(Engine::current().map_err(of_compile)?.executor()),
            false => None,
        };
        door::run(py, &plan.work, kernel, executor, &inputs, &mut outputs).map_err(of_call)?;
    }
    drop(outputs);
    if hidden.contains(&1) {
        let name = given.function.name();
        return Err(PyValueError::new_err(format!("nan{name} of nothing: a slice has no element but NaN")));
    }
    let mut results: SmallVec<[Bound<'py, PyAny>; 2]> = SmallVec::new();
    if let Some(out) = given.out {
        results.push(out.clone());
    }
    for new in news {
        results.push(new.finish(py)?);
    }
    match results.len() {
        1 => Ok(results.remove(0)),
        _ => Ok(PyTuple::new(py, results)?.into_any()),
    }
}
