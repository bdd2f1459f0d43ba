use cranefold::*;
use std::time::Instant;
fn main() {
    let specs = [
        "sum f32[8]",
        "sum f32[96,1000] axes=[1]",
        "max f32[96,1000] axes=[1]",
        "log_sum_exp f32[96,1000] axes=[1]",
        "log_sum_exp f32[96,1000] axes=[0]",
        "mean f32[50,256,14,14] axes=[0,2,3]",
        "mean f32[2,32,60,48,48] axes=[2,3,4]",
        "mean f16[1,1568,1024] axes=[2]",
        "sum_squares f16[1,1568,1024] axes=[2]",
        "mean i64[64,1024] axes=[1]",
        "max f16[8,32,7,7]@acdb axes=[2,3]",
        "sum f32[64,128,56,56] axes=[1]",
    ];
    let t = Target::host().unwrap();
    for round in 0..3 {
        for s in specs {
            let spec: Reduction = s.parse().unwrap();
            let p = Problem::of(&spec);
            let sch = schedule::choose(&p, 128);
            let t0 = Instant::now();
            let mut nest = lower::lower(&p, "x");
            let mut parts = vec![("lower", t0.elapsed().as_micros())];
            for pass in passes::PASSES {
                let t1 = Instant::now();
                nest = (pass.run)(nest, &sch);
                parts.push((pass.name, t1.elapsed().as_micros()));
            }
            let total = t0.elapsed().as_micros();
            let c = Compiler::new(t.clone());
            let k = c.compile(&spec).unwrap();
            if round == 2 {
                println!(
                    "{s}: total {} us, passes {} us {:?} code {}",
                    k.facts().compile_ns / 1000,
                    total,
                    parts.iter().filter(|p| p.1 > 10).collect::<Vec<_>>(),
                    k.facts().code_bytes
                );
            }
        }
    }
}
