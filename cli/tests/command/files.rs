//! Arrays in and out.

use crate::{bytes, folder, read_npy, works, write_npy};
use npyz::Order;
use std::path::Path;

/// Runs a spec on a file and gives the output's.
fn run(spec: &str, input: &Path, more: &[&str]) -> (String, Vec<u64>, Vec<u8>) {
    let output = input.with_file_name("out.npy");
    let args = ["run", spec, "--input", input.to_str().unwrap(), "--output", output.to_str().unwrap()];
    works(&[&args, more].concat());
    read_npy(&output)
}

#[test]
fn either_order_is_the_same_array() {
    let path = folder("either_order_is_the_same_array").join("a.npy");
    // Logical [[1, 2, 3], [40, 50, 60]].
    for (order, elements) in [(Order::C, [1, 2, 3, 40, 50, 60]), (Order::Fortran, [1, 40, 2, 50, 3, 60])] {
        write_npy(&path, "<i4", order, &[2, 3], &bytes!(elements.map(i32::from)));
        for layout in ["", "@ba", "@(8,2)", "@(-3,1)", "@(1,-2)"] {
            for executor in ["native", "interpreter", "reference"] {
                let spec = format!("sum i32[2,3]{layout} axes=[1]");
                let (descr, shape, rows) = run(&spec, &path, &["--executor", executor]);
                assert_eq!((descr.as_str(), shape.as_slice()), ("'<i4'", &[2][..]), "{spec}");
                assert_eq!(rows, bytes!([6i32, 150]), "{spec} {order:?} {executor}");
            }
        }
    }
}

#[test]
fn either_byte_order_is_the_same_array() {
    let path = folder("either_byte_order_is_the_same_array").join("a.npy");
    let elements = [1.5f64, -2.25, 1e300];
    let big: Vec<u8> = elements.iter().flat_map(|e| e.to_be_bytes()).collect();
    write_npy(&path, ">f8", Order::C, &[3], &big);
    assert_eq!(run("max f64[3]", &path, &[]).2, bytes!([1e300f64]));
    let big: Vec<u8> = [1u16, 0x100].iter().flat_map(|e| e.to_be_bytes()).collect();
    write_npy(&path, ">u2", Order::Fortran, &[2], &big);
    assert_eq!(run("sum u16[2]", &path, &[]).2, bytes!([0x101u16]));
}

#[test]
fn every_element_type_goes_in_and_out() {
    let path = folder("every_element_type_goes_in_and_out").join("a.npy");
    let check = |dtype: &str, descr: &str, elements: Vec<u8>, greatest: Vec<u8>| {
        write_npy(&path, descr, Order::C, &[3], &elements);
        let (out_descr, shape, out) = run(&format!("max {dtype}[3]"), &path, &[]);
        assert_eq!((out_descr.trim_matches('\''), shape.len(), out), (descr, 0, greatest), "{dtype}");
    };
    check("bool", "|b1", vec![0, 1, 0], vec![1]);
    check("i8", "|i1", bytes!([-128i8, 127, 3]), bytes!([127i8]));
    check("u8", "|u1", vec![0, 255, 3], vec![255]);
    check("i16", "<i2", bytes!([-300i16, 300, 3]), bytes!([300i16]));
    check("u16", "<u2", bytes!([0u16, 65535, 3]), bytes!([65535u16]));
    check("i32", "<i4", bytes!([i32::MIN, i32::MAX, 3]), bytes!([i32::MAX]));
    check("u32", "<u4", bytes!([0, u32::MAX, 3]), bytes!([u32::MAX]));
    check("i64", "<i8", bytes!([i64::MIN, i64::MAX, 3]), bytes!([i64::MAX]));
    check("u64", "<u8", bytes!([0, u64::MAX, 3]), bytes!([u64::MAX]));
    // 1.0, 2.0 and -3.0 in half precision, then as bf16 bits.
    check("f16", "<f2", bytes!([0x3c00u16, 0x4000, 0xc200]), bytes!([0x4000u16]));
    check("bf16", "<u2", bytes!([0x3f80u16, 0x4000, 0xc040]), bytes!([0x4000u16]));
    check("f32", "<f4", bytes!([1.0f32, 2.0, -3.0]), bytes!([2.0f32]));
    check("f64", "<f8", bytes!([1.0f64, 2.0, -3.0]), bytes!([2.0f64]));
}

#[test]
fn output_layouts_are_written_as_logical_arrays() {
    let path = folder("output_layouts_are_written_as_logical_arrays").join("a.npy");
    write_npy(&path, "<f4", Order::C, &[2, 1, 3], &bytes!([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0]));
    for layout in ["@acb", "@cba", "@(1,9,-4)"] {
        let (_, shape, out) = run(&format!("sum f32[2,1,3] axes=[1] keep_dims -> {layout}"), &path, &[]);
        assert_eq!((shape.as_slice(), out), (&[2, 1, 3][..], bytes!([1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0])), "{layout}");
    }
}

#[test]
fn broadcast_strides_take_equal_elements() {
    let path = folder("broadcast_strides_take_equal_elements").join("a.npy");
    write_npy(&path, "<f4", Order::C, &[2, 2], &bytes!([1.0f32, 2.0, 1.0, 2.0]));
    assert_eq!(run("sum f32[2,2]@(0,1) axes=[1]", &path, &[]).2, bytes!([3.0f32, 3.0]));
}

#[test]
fn empty_arrays_and_scalars_are_arrays() {
    let path = folder("empty_arrays_and_scalars_are_arrays").join("a.npy");
    write_npy(&path, "<f4", Order::C, &[2, 0], &[]);
    assert_eq!(run("min f32[2,0] axes=[1]", &path, &[]).2, bytes!([f32::INFINITY; 2]));
    assert_eq!(run("min f32[2,0] axes=[0]", &path, &[]).1, [0]);
    write_npy(&path, "<f4", Order::C, &[], &bytes!([7.5f32]));
    assert_eq!(run("sum f32[]", &path, &[]), ("'<f4'".into(), vec![], bytes!([7.5f32])));
}
