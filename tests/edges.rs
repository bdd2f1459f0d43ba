//! No kernel reads behind the last element of an input, not even what it throws away.
//!
//! Inputs end where memory does: behind them lies a page of a file that was cut off, reading which ends the process.

use cranefold::spec::Operand;
use cranefold::{Compiler, Input, Options, Output, Reduction};
use memmap2::MmapMut;
use std::fs::{self, OpenOptions};
use std::path::PathBuf;

/// The most bytes of a page on the machines that this runs on.
const PAGE: usize = 64 << 10;

/// Memory behind which there is none.
struct Edge {
    map: MmapMut,
    len: usize,
}

impl Edge {
    fn of(name: &str, bytes: &[u8]) -> Edge {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(true).open(&path).expect("a file");
        let len = bytes.len().next_multiple_of(PAGE);
        file.set_len((len + PAGE) as u64).expect("a longer file");
        // SAFETY: nobody else opens the file, and what is cut off of it is not named by any slice.
        #[allow(unsafe_code, reason = "memory that ends is made of a file")]
        let mut map = unsafe { MmapMut::map_mut(&file) }.expect("memory");
        map[len - bytes.len()..len].copy_from_slice(bytes);
        file.set_len(len as u64).expect("a shorter file");
        fs::remove_file(path).expect("the file");
        Edge { map, len }
    }

    fn last(&self, bytes: usize) -> &[u8] {
        &self.map[self.len - bytes..self.len]
    }
}

/// Ops, types and ends of specs: rows of a few elements, views with holes, the last vector of which is a part,
/// and inputs that lie across one another.
fn specs() -> Vec<String> {
    let ops = [("sum", "f32"), ("max", "f64"), ("sum", "i64"), ("max", "i16"), ("mean", "f16"), ("max", "u8")];
    let mut specs = vec![];
    for (op, dtype) in ops {
        for row in [2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16] {
            for rows in [16, 37, 64, 131] {
                specs.push(format!("{op} {dtype}[{rows},{row}] axes=[1]"));
            }
        }
        // Rows that share the folds of their lanes.
        for row in [17, 20, 24, 31, 33, 64, 65, 100, 130] {
            for rows in [16, 37] {
                specs.push(format!("{op} {dtype}[{rows},{row}] axes=[1]"));
            }
        }
        for stride in [2, 3, 4, 5, 7, 8, 13, 16] {
            for row in [32, 100, 256, 1000] {
                let layout = format!("({},{stride})", row * stride + 1);
                specs.push(format!("{op} {dtype}[5,{row}]@{layout} axes=[1]"));
                specs.push(format!("{op} {dtype}[5,{row}]@{layout} axes=[0]"));
            }
        }
    }
    for (op, dtype) in ops {
        for [rows, row] in [[16, 64], [19, 37], [64, 16], [70, 131], [200, 33]] {
            for axes in ["[0]", "[1]", "[0,1]"] {
                for layout in ["@ba", &format!("@(1,{})", rows + 3), &format!("@(-1,{})", 2 * rows)] {
                    specs.push(format!(
                        "{op} {dtype}[{rows},{row}], {dtype}[{rows},{row}]{layout} axes={axes} map=\"x0*x1\""
                    ));
                }
            }
        }
    }
    for op in ["argmax", "log_sum_exp", "var", "softmax"] {
        specs.extend([2, 3, 4, 7, 8].map(|row| format!("{op} f32[53,{row}] axes=[1]")));
    }
    specs
}

#[test]
fn nothing_behind_an_input_is_read() {
    let compiler = Compiler::host().expect("a compiler");
    for text in specs() {
        let spec: Reduction = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        let output = &spec.output_desc()[0];
        // Ordinary numbers of all types.
        let byte = |n: usize, size: usize| if n % size == size - 1 { 0x3c } else { (n * 7) as u8 };
        let bytes = |input: &Operand| {
            let size = input.dtype().bytes() as usize;
            (0..input.span_elems() as usize * size).map(|n| byte(n, size)).collect::<Vec<u8>>()
        };
        let data: Vec<Vec<u8>> = spec.inputs().iter().map(bytes).collect();
        let edges: Vec<Edge> = data.iter().map(|bytes| Edge::of("edge", bytes)).collect();
        let run = |width: u32, data: &[&[u8]]| {
            let kernel =
                compiler.compile_with(&spec, &Options { schedule: None, width: Some(width) }).expect("a kernel");
            let mut out = vec![0u8; output.span_bytes as usize];
            let inputs = spec.inputs().iter().zip(data).map(|(input, bytes)| Input::from_bytes(input.dtype(), bytes));
            let to = Output::from_bytes(output.dtype, &mut out);
            kernel.run(&inputs.collect::<Vec<_>>(), &mut [to]).unwrap_or_else(|e| panic!("{text}: {e}"));
            out
        };
        let expected = run(128, &data.iter().map(Vec::as_slice).collect::<Vec<_>>());
        for width in [128, 256, 512] {
            let last: Vec<&[u8]> = edges.iter().zip(&data).map(|(edge, bytes)| edge.last(bytes.len())).collect();
            assert_eq!(run(width, &last), expected, "{text}, {width} bits");
        }
    }
}
