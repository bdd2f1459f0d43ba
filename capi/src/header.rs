//! The header is held to these sources: its functions with their parameters, its structs with the places of their fields,
//! its numbers; and every function of it is used by the C tests.

use crate::compiler::{Options, Statistics};
use crate::error::Code;
use crate::partial::Span;
use crate::tensor::{self, DataType, Description, Device, Tensor};
use std::collections::BTreeMap;
use std::mem::{align_of, offset_of, size_of};

const HEADER: &str = include_str!("../include/cranefold.h");
const SOURCES: [&str; 9] = [
    include_str!("call.rs"),
    include_str!("compiler.rs"),
    include_str!("error.rs"),
    include_str!("kernel.rs"),
    include_str!("lib.rs"),
    include_str!("mpi.rs"),
    include_str!("partial.rs"),
    include_str!("run.rs"),
    include_str!("text.rs"),
];

/// The header without comments, on one line.
fn flat() -> String {
    let mut text = String::new();
    let mut rest = HEADER;
    while let Some((before, after)) = rest.split_once("/*") {
        text += before;
        rest = after.split_once("*/").expect("the end of a comment").1;
    }
    text += rest;
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The parameters of a list: an empty one and `void` have none.
fn count(parameters: &str) -> usize {
    match parameters.trim().trim_end_matches(',') {
        "" | "void" => 0,
        some => some.split(',').count(),
    }
}

/// The functions of the header: their names and how many parameters they have.
fn of_header() -> BTreeMap<String, usize> {
    let text = flat();
    let mut all = BTreeMap::new();
    for (at, _) in text.match_indices("cranefold_") {
        let end = text[at..].find(|c: char| !c.is_ascii_alphanumeric() && c != '_').expect("an end") + at;
        let before = text[..at].trim_end_matches('*').trim_end();
        let is_type = before.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
        if text[end..].starts_with('(') && is_type && !before.ends_with("return") {
            let close = text[end..].find(')').expect("the end of the parameters") + end;
            if text[close + 1..].starts_with(';') {
                all.insert(text[at..end].to_string(), count(&text[end + 1..close]));
            }
        }
    }
    all
}

/// The functions of the sources.
fn of_sources() -> BTreeMap<String, usize> {
    let mut all = BTreeMap::new();
    for source in SOURCES {
        let exported = source.split("#[unsafe(no_mangle)]").skip(1);
        for text in exported {
            let rest = text.split_once("fn ").expect("a function").1;
            let (name, rest) = rest.split_once('(').expect("its parameters");
            let parameters = rest.split_once(')').expect("their end").0;
            all.insert(name.to_string(), count(parameters));
        }
    }
    all
}

#[test]
fn the_functions_are_those_of_the_sources() {
    let (header, sources) = (of_header(), of_sources());
    assert!(header.len() > 45, "{}", header.len());
    assert_eq!(header, sources);
}

#[test]
fn the_tests_use_every_function() {
    let (c, cpp) = (include_str!("../tests/functions.c"), include_str!("../include/cranefold.hpp"));
    for name in of_header().keys() {
        assert!(c.contains(&format!("{name}(")), "functions.c does not call {name}");
        let only_in_c = ["cranefold_abi_version", "cranefold_version", "cranefold_mpi_combine"];
        assert!(cpp.contains(name.as_str()) || only_in_c.contains(&name.as_str()), "cranefold.hpp has no {name}");
    }
}

/// The size and alignment of a type of the header, on machines of 64 bits.
fn layout(of: &str, structs: &BTreeMap<String, (usize, usize)>) -> (usize, usize) {
    match of {
        pointer if pointer.contains('*') => (8, 8),
        "uint8_t" => (1, 1),
        "uint16_t" => (2, 2),
        "int32_t" | "uint32_t" => (4, 4),
        "int64_t" | "uint64_t" | "size_t" => (8, 8),
        other => *structs.get(other).unwrap_or_else(|| panic!("{other} is no type of the header")),
    }
}

/// A struct by the rules of C: the places of its fields by name, its size and its alignment.
type Struct = (Vec<(String, usize)>, (usize, usize));

fn structs() -> BTreeMap<String, Struct> {
    let text = flat();
    let (mut all, mut known) = (BTreeMap::new(), BTreeMap::new());
    for part in text.split("typedef struct ").skip(1) {
        let Some((name, rest)) = part.split_once(" {") else { continue };
        if name.contains(';') {
            continue;
        }
        let body = rest.split_once('}').expect("the end of a struct").0;
        let (mut at, mut most, mut places) = (0usize, 1, vec![]);
        for field in body.split(';').map(str::trim).filter(|field| !field.is_empty()) {
            let split = field.rfind([' ', '*']).expect("a type and a name") + 1;
            let (size, align) = layout(field[..split].trim(), &known);
            at = at.next_multiple_of(align);
            places.push((field[split..].to_string(), at));
            at += size;
            most = most.max(align);
        }
        let whole = (at.next_multiple_of(most), most);
        known.insert(name.to_string(), whole);
        all.insert(name.to_string(), (places, whole));
    }
    all
}

macro_rules! of_rust {
    ($type:ty { $($field:ident)* }) => {
        (
            vec![$((stringify!($field).to_string(), offset_of!($type, $field))),*],
            (size_of::<$type>(), align_of::<$type>()),
        )
    };
}

#[test]
#[cfg(target_pointer_width = "64")]
fn the_structs_are_those_of_the_sources() {
    let expected: [(&str, Struct); 7] = [
        ("cranefold_dtype", of_rust!(DataType { code bits lanes })),
        ("cranefold_device", of_rust!(Device { kind id })),
        ("cranefold_tensor", of_rust!(Tensor { data device ndim dtype shape strides byte_offset })),
        ("cranefold_options", of_rust!(Options { struct_size width threads most_kernels most_code_bytes schedules })),
        ("cranefold_statistics", of_rust!(Statistics { hits misses compiles failures evictions kernels code_bytes })),
        ("cranefold_operand", of_rust!(Description { dtype ndim shape strides origin span_elems span_bytes name })),
        ("cranefold_span", of_rust!(Span { input dtype first end })),
    ];
    let expected: BTreeMap<String, Struct> = expected.into_iter().map(|(name, of)| (name.to_string(), of)).collect();
    assert_eq!(structs(), expected);
    // A tensor is a DLTensor.
    assert_eq!((size_of::<Tensor>(), offset_of!(Tensor, dtype), offset_of!(Tensor, byte_offset)), (48, 20, 40));
}

#[test]
fn the_numbers_are_those_of_the_sources() {
    let defined = |name: &str| -> i64 {
        let line = HEADER.lines().find(|line| line.starts_with(&format!("#define {name} ")));
        let line = line.unwrap_or_else(|| panic!("the header has no {name}"));
        let value = line.split_whitespace().nth(2).expect("a number").trim_matches(['(', ')']);
        value.parse().unwrap_or_else(|_| panic!("{line}"))
    };
    let numbers = [
        ("CRANEFOLD_ABI_VERSION", crate::ABI_VERSION.into()),
        ("CRANEFOLD_ERROR_ARGUMENT", Code::Argument as i64),
        ("CRANEFOLD_ERROR_SPEC", Code::Spec as i64),
        ("CRANEFOLD_ERROR_COMPILE", Code::Compile as i64),
        ("CRANEFOLD_ERROR_TENSOR", Code::Tensor as i64),
        ("CRANEFOLD_ERROR_CALL", Code::Call as i64),
        ("CRANEFOLD_ERROR_STATE", Code::State as i64),
        ("CRANEFOLD_ERROR_MEMORY", Code::Memory as i64),
        ("CRANEFOLD_ERROR_INTERNAL", Code::Internal as i64),
        ("CRANEFOLD_INT", tensor::INT.into()),
        ("CRANEFOLD_UINT", tensor::UINT.into()),
        ("CRANEFOLD_FLOAT", tensor::FLOAT.into()),
        ("CRANEFOLD_BFLOAT", tensor::BFLOAT.into()),
        ("CRANEFOLD_BOOL", tensor::BOOL.into()),
        ("CRANEFOLD_CPU", tensor::CPU.into()),
        ("CRANEFOLD_BUFFER", tensor::BUFFER.into()),
    ];
    for (name, number) in numbers {
        assert_eq!(defined(name), number, "{name}");
    }
    for dtype in cranefold::DType::ALL {
        let DataType { code, bits, lanes } = DataType::of(dtype);
        let kind = ["INT", "UINT", "FLOAT", "", "BFLOAT", "", "BOOL"][usize::from(code)];
        let name = if kind == "BOOL" { "BOOL8".to_string() } else { dtype.name().to_uppercase() };
        let line = format!("#define CRANEFOLD_{name} ((cranefold_dtype){{CRANEFOLD_{kind}, {bits}, {lanes}}})");
        assert!(HEADER.contains(&line), "the header has no {line}");
    }
}
