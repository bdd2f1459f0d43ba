use cranefold::*;
fn main() {
    let t = Target::host().unwrap();
    let spec: Reduction = std::env::args().nth(1).unwrap().parse().unwrap();
    let mut v = vec![];
    for _ in 0..2000 {
        let c = Compiler::new(t.clone());
        v.push(c.compile(&spec).unwrap().facts().compile_ns);
    }
    v.sort();
    println!("median {} us", v[1000] / 1000);
}
