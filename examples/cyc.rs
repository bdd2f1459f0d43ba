use cranefold::*;
fn main() {
    let spec: Reduction = std::env::args().nth(1).unwrap().parse().unwrap();
    let reps: usize = std::env::args().nth(2).unwrap().parse().unwrap();
    let options = Options { schedule: std::env::var("S").ok().map(|s| s.parse().unwrap()), width: None };
    let k = Compiler::host().unwrap().compile_with(&spec, &options).unwrap();
    let d = spec.inputs()[0].dtype();
    let x = vec![0x3cu8; spec.inputs()[0].span_bytes() as usize];
    let mut y = vec![0u8; spec.outputs()[0].span_bytes() as usize];
    let t = std::time::Instant::now();
    for _ in 0..reps {
        k.run(&[Input::from_bytes(d, &x)], &mut [Output::from_bytes(spec.outputs()[0].dtype(), &mut y)]).unwrap();
    }
    println!("{:.2} GB/s", x.len() as f64 * reps as f64 / t.elapsed().as_nanos() as f64);
}
