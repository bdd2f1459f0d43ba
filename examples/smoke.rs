use cranefold::ir::eval;
use cranefold::*;
fn main() {
    let compiler = Compiler::host().unwrap();
    let args: Vec<String> = std::env::args().skip(1).collect();
    let stage = args.get(1).cloned();
    let spec: Reduction = args[0].parse().unwrap();
    let options = Options { schedule: std::env::var("S").ok().map(|s| s.parse().unwrap()), width: None };
    let kernel = match compiler.compile_with(&spec, &options) {
        Ok(k) => k,
        Err(e) => {
            println!("{e}");
            return;
        }
    };
    if let Some(s) = stage {
        println!("{}", kernel.dump(&s).unwrap());
    }
    let n = spec.inputs()[0].span_bytes() as usize;
    let mut x = vec![0u8; n];
    let mut r = 12345u32;
    let d = spec.inputs()[0].dtype();
    let sz = d.bytes() as usize;
    for i in 0..n / sz {
        r = r.wrapping_mul(1664525).wrapping_add(1013904223);
        Scalar::from_bits(d, 0);
        let s = if d.is_float() {
            Scalar::float(d, (r >> 8) as f64 / 16777216.0 - 0.5)
        } else {
            Scalar::from_bits(d, r as u64 >> 13)
        };
        s.write(&mut x, i);
    }
    let m = spec.outputs()[0].span_bytes() as usize;
    let mut y = vec![0u8; m];
    let ib = [Input::from_bytes(d, &x)];
    kernel.run(&ib, &mut [Output::from_bytes(spec.outputs()[0].dtype(), &mut y)]).unwrap();
    let problem = Problem::of(&spec);
    for (name, nest) in pipeline::stages(&problem, kernel.schedule()).unwrap() {
        if n < 1 << 24 {
            let mut z = vec![0u8; m];
            eval::run(&nest, &mut eval::Bits { inputs: vec![&x], outputs: vec![&mut z] });
            if z != y {
                println!("MISMATCH after {name}");
            }
        }
    }
    let best = (0..7)
        .map(|_| {
            let t = std::time::Instant::now();
            let reps = (50_000_000 / (n + 1000)).max(1);
            for _ in 0..reps {
                kernel.run(&ib, &mut [Output::from_bytes(spec.outputs()[0].dtype(), &mut y)]).unwrap();
            }
            t.elapsed().as_nanos() as f64 / reps as f64
        })
        .fold(f64::MAX, f64::min);
    let f = kernel.facts();
    let o = Scalar::read(spec.outputs()[0].dtype(), &y, 0);
    println!(
        "{spec}: {o} {:.1} ns {:.1} GB/s, compile {} us, {} code bytes, {}",
        best,
        n as f64 / best,
        f.compile_ns / 1000,
        f.code_bytes,
        f.schedule
    );
}
