//! Runs the regions of `docs/regions.md` on data of a fixed formula, and prints a hash of each output's bytes: the C tests
//! compare theirs.
//!
//!     cargo run --release --example regions
//!
//! A line has the hashes of a region's outputs, a tab, and the region.

use cranefold::{Compiler, DType, Error, Input, Kernel, Output, Spec};

/// Bytes of elements by the formula: small numbers that every type holds.
fn elements(dtype: DType, count: u64, mut state: u32) -> Vec<u8> {
    let mut bytes = vec![];
    for _ in 0..count {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let number = (state >> 16 & 0xff) as i32 - 128;
        let float = number as f32 / 16.0;
        match dtype {
            DType::F32 => bytes.extend(float.to_ne_bytes()),
            DType::F64 => bytes.extend(f64::from(float).to_ne_bytes()),
            DType::Bf16 => bytes.extend(((float.to_bits() >> 16) as u16).to_ne_bytes()),
            DType::Bool => bytes.push((number & 1) as u8),
            DType::I64 => bytes.extend(i64::from(number & 3).to_ne_bytes()),
            DType::I8 => bytes.push((number & 3) as u8),
            other => panic!("no region of the page has elements of {other}"),
        }
    }
    bytes
}

/// FNV-1a of 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

fn outputs_of(kernel: &Kernel) -> Result<Vec<u64>, Error> {
    let all = kernel.inputs().chain(kernel.outputs());
    let buffers: Vec<(DType, Vec<u8>)> =
        (1..).zip(all).map(|(seed, (dtype, count))| (dtype, elements(dtype, count, seed))).collect();
    let (inputs, mut outputs) =
        (buffers[..kernel.inputs().count()].to_vec(), buffers[kernel.inputs().count()..].to_vec());
    let inputs: Vec<Input> = inputs.iter().map(|(dtype, bytes)| Input::from_bytes(*dtype, bytes)).collect();
    let mut places: Vec<Output> = outputs.iter_mut().map(|(dtype, bytes)| Output::from_bytes(*dtype, bytes)).collect();
    kernel.run(&inputs, &mut places)?;
    Ok(outputs.iter().map(|(_, bytes)| hash(bytes)).collect())
}

fn main() -> Result<(), Error> {
    let page = include_str!("../docs/regions.md").split("## Examples").nth(1).expect("the examples");
    let compiler = Compiler::host()?;
    for rest in page.split("\"region ").skip(1) {
        let text = format!("region {}", rest.split('"').next().expect("the text"));
        let spec: Spec = text.parse()?;
        let hashes = outputs_of(&compiler.compile(&spec)?)?;
        let hashes: Vec<String> = hashes.iter().map(|hash| format!("{hash:016x}")).collect();
        println!("{}\t{spec}", hashes.join(" "));
    }
    Ok(())
}
