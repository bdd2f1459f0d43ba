//! The evaluation of graphs in real arithmetic.

use cranefold_graph::{DType, Data, Graph};

fn evaluated(text: &str, inputs: &[Data]) -> Vec<Vec<f64>> {
    let graph: Graph = text.parse().unwrap();
    let outputs = graph.evaluate(inputs).unwrap();
    outputs.iter().map(|t| t.elements.iter().map(|e| e.as_f64()).collect()).collect()
}

fn f32s(shape: &[u64], values: &[f32]) -> Data {
    Data::new(DType::F32, shape, values.iter().flat_map(|v| v.to_ne_bytes()).collect::<Vec<_>>()).unwrap()
}

#[test]
fn views_move_elements() {
    let x = f32s(&[2, 3], &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    let text = "graph { x: f32[2,3] = input; t = transpose(x) perm=[1,0]; r: f32[6] = reshape(t)
        s: f32[2] = slice(r) start=[5] step=[-2]; b: f32[2,2] = broadcast(s); c = concat(b, b) axis=1
        return r, s, b, c }";
    let results = evaluated(text, &[x]);
    assert_eq!(results[0], [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
    assert_eq!(results[1], [6.0, 5.0]);
    assert_eq!(results[2], [6.0, 5.0, 6.0, 5.0]);
    assert_eq!(results[3], [6.0, 5.0, 6.0, 5.0, 6.0, 5.0, 6.0, 5.0]);
}

#[test]
fn integers_wrap_and_casts_stay() {
    let x = Data::of_ints(DType::I8, &[3], &[100, 100, -128]).unwrap();
    let text = r#"graph { x: i8[3] = input; y = map(x) "x0 + 50"; s = sum(x) axes=[0]; d = map(x) "x0 / -1"
        f: f32[3] = cast(x); g = map(f) "f32(f16(x0 + 0.03125)) * 2"; u: u8[3] = cast(x) saturate; m = mean(x) axes=[0]
        return y, s, d, g, u, m }"#;
    let results = evaluated(text, &[x]);
    assert_eq!(results[0], [-106.0, -106.0, -78.0]);
    assert_eq!(results[1], [72.0]);
    assert_eq!(results[2], [-100.0, -100.0, -128.0]);
    assert_eq!(results[3], [200.0, 200.0, -256.0]);
    assert_eq!(results[4], [100.0, 100.0, 0.0]);
    assert_eq!(results[5], [24.0]);
}

#[test]
fn composites_are_their_definitions() {
    let x = f32s(&[1, 2, 2], &[1.0, 3.0, 2.0, 2.0]);
    let w = f32s(&[2], &[2.0, 1.0]);
    let text = "graph { x: f32[1,2,2] = input; w: f32[2] = input; i = instance_norm(x, w, w) eps=0.0
        g = group_norm(x) groups=1.0 eps=0.0; h = hardmax(x) axes=[2]; n = lp(x) p=3.0 axes=[2]
        s = softmax(x) axes=[0,1,2]; mv = mvn(x) eps=0.0 outside=1.0 axes=[0,2]
        return i, g, h, n, s, mv }";
    let results = evaluated(text, &[x, w]);
    assert_eq!(results[0][..2], [0.0, 4.0]);
    assert!(results[0][2].is_nan());
    let deviation = 0.5f64.sqrt();
    assert!((results[1][0] + 1.0 / deviation).abs() < 1e-12 && results[1][2] == 0.0);
    assert_eq!(results[2], [0.0, 1.0, 1.0, 0.0]);
    assert!((results[3][0] - 28f64.powf(1.0 / 3.0)).abs() < 1e-12);
    assert!((results[4].iter().sum::<f64>() - 1.0).abs() < 1e-12);
    assert_eq!(results[5][..2], [-1.0, 1.0]);
}

#[test]
fn losses_pick_weigh_and_ignore() {
    let x = f32s(&[3, 2], &[-1.0, -2.0, -3.0, -4.0, -5.0, f32::NEG_INFINITY]);
    let label = Data::of_ints(DType::I32, &[3], &[1, -1, 0]).unwrap();
    let weight = f32s(&[2], &[2.0, 4.0]);
    let text = "graph { x: f32[3,2] = input; l: i32[3] = input; w: f32[2] = input
        a = nll_loss(x, l); b = nll_loss_sum(x, l, w); c = nll_loss_mean(x, l, w); d = nll_loss(x, l) ignore=1.0
        e = nll_loss_mean(x, l) ignore=0.0
        return a, b, c, d, e }";
    let results = evaluated(text, &[x, label, weight]);
    assert_eq!(results[0], [2.0, 4.0, 5.0]);
    assert_eq!(results[1], [8.0 + 16.0 + 10.0]);
    assert_eq!(results[2], [34.0 / 10.0]);
    assert_eq!(results[3], [0.0, 4.0, 5.0]);
    assert_eq!(results[4], [3.0]);
}
