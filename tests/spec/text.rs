//! Texts and their canonical form.

use cranefold::{DType, Layout, Spec, spec::Rounding};

/// A text as written, and as printed.
const CANONICAL: &[(&str, &str)] = &[
    // The examples of the public interface.
    ("sum f32[6,12,10,24] axes=[2,3]", "sum f32[6,12,10,24] axes=[2,3]"),
    ("mean f32[6,12,10,24] axes=-2 keep_dims", "mean f32[6,12,10,24] axes=[2] keep_dims"),
    ("sum i8[1024,1024] axes=[-1] -> i32", "sum i8[1024,1024] axes=[1] -> i32"),
    ("sum f32[1000000] acc=f64", "sum f32[1000000] acc=f64"),
    ("max f16[8,32,7,7]@acdb axes=[2,3]", "max f16[8,32,7,7]@acdb axes=[2,3]"),
    ("sum f32[4,10]@(20,2) axes=[1]", "sum f32[4,10]@(20,2) axes=[1]"),
    ("sum i16[64,64] axes=[0] saturate", "sum i16[64,64] axes=[0] saturate"),
    ("mean i32[64,64] axes=[0] round_half_even", "mean i32[64,64] axes=[0] round_half_even"),
    ("lp_max(p=3,eps=1e-6) f32[32,64] axes=[1]", "lp_max(p=3,eps=1e-6) f32[32,64] axes=[1]"),
    ("all bool[6,12,10,24] axes=[2,3]", "all bool[6,12,10,24] axes=[2,3]"),
    ("l2 f32[2,3] axes=[] empty_axes=lift", "l2 f32[2,3] axes=[] empty_axes=lift"),
    ("sum f32[]", "sum f32[]"),
    // Aliases, in any case; parameters that make a simpler op.
    ("ReduceLogicalAnd bool[2]", "all bool[2]"),
    ("reducelogicalor bool[2]", "any bool[2]"),
    ("mul f32[2]", "prod f32[2]"),
    ("norm_lp_add(p=3) f32[2]", "lp_sum(p=3) f32[2]"),
    ("norm_lp_sum(p=3) f32[2]", "lp_sum(p=3) f32[2]"),
    ("logsumexp f32[2]", "log_sum_exp f32[2]"),
    ("sumsq f32[2]", "sum_squares f32[2]"),
    ("amax f32[2]", "max f32[2]"),
    ("ReduceLp(p=2) f32[2]", "l2 f32[2]"),
    ("lp(p=1.0) f32[2]", "l1 f32[2]"),
    ("lp(p=2.5) f32[2]", "lp(p=2.5) f32[2]"),
    ("lp_max(eps=-0,p=3e0) f32[2]", "lp_max(p=3) f32[2]"),
    ("sum() f32[2]", "sum f32[2]"),
    // Axes in any order and sign; all of them go unsaid.
    ("sum f32[2,3,4] axes=[2,-3]", "sum f32[2,3,4] axes=[0,2]"),
    ("sum f32[2,3] axes=[1,0]", "sum f32[2,3]"),
    ("sum f32[] axes=[]", "sum f32[]"),
    ("sum f32[2] axes=[]", "sum f32[2] axes=[]"),
    // Words in any order, with white space between any two tokens.
    ("sum keep_dims axes=[0] f32[2,3]", "sum f32[2,3] axes=[0] keep_dims"),
    ("sum -> f64 f32[2]", "sum f32[2] -> f64"),
    (" sum\tf32 [ 2 , 3 ] @ ba axes = [ 1 ]\n-> f64 @ (3) ", "sum f32[2,3]@ba axes=[1] -> f64@(3)"),
    ("lp_max ( p = 3 , eps = 1 ) f32[2]", "lp_max(p=3,eps=1) f32[2]"),
    ("sum f32[2,3,4] axes=0 -> @ba", "sum f32[2,3,4] axes=[0] -> @ba"),
    ("sum f32[2,3]@(-3,0) axes=0", "sum f32[2,3]@(-3,0) axes=[0]"),
    ("sum f32[]@() -> @()", "sum f32[]@() -> @()"),
    // Defaults, and words that make no difference, go unsaid.
    ("sum f16[2] acc=f32 -> f16", "sum f16[2]"),
    ("sum f64[2] acc=f64", "sum f64[2]"),
    ("mean i32[2] trunc", "mean i32[2]"),
    ("mean f32[2] trunc -> i32", "mean f32[2] trunc -> i32"),
    ("sum f32[2] axes=[] keep_dims empty_axes=identity", "sum f32[2] axes=[]"),
    ("sum f32[2] empty_axes=lift", "sum f32[2]"),
    ("lp_max(p=3) f32[2] axes=[] empty_axes=lift", "lp_max(p=3) f32[2] axes=[]"),
    // Spellings of other libraries, and comments.
    ("sum float32[2,3] axis=1", "sum f32[2,3] axes=[1]"),
    ("sum F32[2,3] dim=(1,)", "sum f32[2,3] axes=[1]"),
    ("sum bfloat16[2,3] dims=(0,1)", "sum bf16[2,3]"),
    ("sum uint8[2,3] -> Int32", "sum u8[2,3] -> i32"),
    ("sum half[2,3] acc=double", "sum f16[2,3] acc=f64"),
    ("any boolean[2]", "any bool[2]"),
    ("sum f32[2,3,4] axes=1,0", "sum f32[2,3,4] axes=[0,1]"),
    ("sum f32[2,3,4] axes=-1, 0 keep_dims", "sum f32[2,3,4] axes=[0,2] keep_dims"),
    ("sum f32[2,3] axes=all", "sum f32[2,3]"),
    ("sum f32[2,3] axis=1 keepdims", "sum f32[2,3] axes=[1] keep_dims"),
    ("sum f32[2,3] axis=1 keepdims=True", "sum f32[2,3] axes=[1] keep_dims"),
    ("sum f32[2,3] axes=1 keep_dims=false", "sum f32[2,3] axes=[1]"),
    ("sum f32[2,3] axis=1 dtype=float64", "sum f32[2,3] axes=[1] acc=f64 -> f64"),
    ("sum i8[2,3] axis=1 dtype=int32", "sum i8[2,3] axes=[1] -> i32"),
    ("mean i32[2,3] dtype=float32", "mean i32[2,3] -> f32"),
    ("sum f32[2] dtype=f16", "sum f32[2] -> f16"),
    ("var f32[2,3] axes=1 ddof=1", "var(ddof=1) f32[2,3] axes=[1]"),
    ("var f32[2,3] axes=1 correction=1", "var(ddof=1) f32[2,3] axes=[1]"),
    ("sum f32[2,3] axis=None", "sum f32[2,3]"),
    ("mean,std ddof=1 f32[2,3]", "mean, std(ddof=1) f32[2,3]"),
    ("quantile q=0.5 f32[2]", "quantile(q=0.5) f32[2]"),
    ("argmax f32[2] last", "argmax(last) f32[2]"),
    ("sum f32[2] # a comment", "sum f32[2]"),
    ("# a comment\nsum f32[2,3] # another\n axes=1", "sum f32[2,3] axes=[1]"),
    ("region x:float32[2,3] axis=1 keepdims=true { sum(x) }", "region x:f32[2,3] axes=[1] keep_dims { sum(x) }"),
    ("region x:f32[2,3] axes=all { sum(x) }", "region x:f32[2,3] { sum(x) }"),
    // Flags.
    ("argmax(last) f32[2]", "argmax(last) f32[2]"),
    ("ArgMin(last=1) f32[2]", "argmin(last) f32[2]"),
    ("argmax(last=0) f32[2]", "argmax f32[2]"),
    ("var(ddof=1) f32[2]", "var(ddof=1) f32[2]"),
    ("variance(ddof=0) f32[2]", "var f32[2]"),
    ("NormalizeL2_add(eps=1e-12) f32[2,3] axes=[1]", "l2_normalize_add(eps=1e-12) f32[2,3] axes=[1]"),
    ("softmax f32[2,3] axes=[1] keep_dims", "softmax f32[2,3] axes=[1]"),
    // Several reducers, inputs, outputs.
    ("max,argmax f32[32,1000] axes=[1]", "max, argmax f32[32,1000] axes=[1]"),
    ("min , max(  ) f32[2]", "min, max f32[2]"),
    ("max,argmax f32[2] -> f32, i64", "max, argmax f32[2]"),
    ("max,argmax f32[2] -> f64, i32", "max, argmax f32[2] -> f64, i32"),
    ("min,max f32[2,3] axes=1 -> @(2), @(1)", "min, max f32[2,3] axes=[1] -> f32@(2), f32@(1)"),
    ("min,max f32[2,3] axes=1 -> f64, @(2)", "min, max f32[2,3] axes=[1] -> f64, f32@(2)"),
    ("max,max f32[2]", "max, max f32[2]"),
    ("layer_norm f32[2,3] f32[3] f32[3] axes=[1]", "layer_norm f32[2,3], f32[3], f32[3] axes=[1]"),
    // Expressions.
    (r#"sum f32[64,512], f32[64,512] axes=[1] map="x0*x1""#, r#"sum f32[64,512], f32[64,512] axes=[1] map="x0 * x1""#),
    (
        r#"sum map = "(x0)*(x0)" f32[8,64,28,28] then="sqrt(r0 / 6272)" axes=[0,2,3]"#,
        r#"sum f32[8,64,28,28] axes=[0,2,3] map="x0 * x0" then="sqrt(r0 / 6272)""#,
    ),
    (
        r#"mean f32[32]:then f32[32,768]@ba axes=[1] then="max(r0,0)+y0""#,
        r#"mean f32[32,768]@ba, f32[32]:then axes=[1] then="max(r0, 0) + y0""#,
    ),
    (
        r#"sum scalar eps : f32 f32[64,512] axes=[1] then="r0/(r0+eps)""#,
        r#"sum f32[64,512] axes=[1] scalar eps:f32 then="r0 / (r0 + eps)""#,
    ),
    (r#"sum f32[4,5] axes=1 then="0.5*d + r0""#, r#"sum f32[4,5] axes=[1] then="0.5 * d + r0""#),
    (
        r#"sum f32[8,100] axes=[1] keep_dims apply="x0/r0" -> f32@ba"#,
        r#"sum f32[8,100] axes=[1] apply="x0 / r0" -> @ba"#,
    ),
    (r#"any f32[4] map="not (x0<0) or x0==1""#, r#"any f32[4] map="not x0 < 0 or x0 == 1""#),
    (r#"mean i32[4] then="r0" -> f32"#, r#"mean i32[4] then="r0" -> f32"#),
    (r#"sum f32[4] map="x0" axes=[]"#, r#"sum f32[4] axes=[] map="x0""#),
    // Combiners.
    (
        r#"combiner(identity="0",lift="x0",combine="a0+b0") f32[2]"#,
        r#"combiner(identity="0", lift="x0", combine="a0 + b0") f32[2]"#,
    ),
    (
        r#"Combiner ( commutative , identity = "0, 0" , lift = "x0,x0*x0" , combine = "a0+b0,a1+b1" , finish = "a1-a0*a0" ) f32[2]"#,
        r#"combiner(identity="0, 0", lift="x0, x0 * x0", combine="a0 + b0, a1 + b1", finish="a1 - a0 * a0", commutative) f32[2]"#,
    ),
    (
        r#"combiner(identity="0", lift="x0", combine="a0+b0", close="a0/n, n", merge="(a0*a1+b0*b1)/(a1+b1), a1+b1", finish="a0") f32[2]"#,
        r#"combiner(identity="0", lift="x0", combine="a0 + b0", close="a0 / n, n", merge="(a0 * a1 + b0 * b1) / (a1 + b1), a1 + b1", finish="a0") f32[2]"#,
    ),
    (
        r#"sum, combiner(identity="1", lift="x0", combine="a0*b0") f32[2] then="r0/r1""#,
        r#"sum, combiner(identity="1", lift="x0", combine="a0 * b0") f32[2] then="r0 / r1""#,
    ),
];

#[test]
fn texts_print_canonically_and_read_back() {
    for &(text, canonical) in CANONICAL {
        let spec: Spec = text.parse().unwrap_or_else(|e| panic!("{text}: {e}"));
        assert_eq!(spec.to_string(), canonical, "{text}");
        assert_eq!(canonical.parse(), Ok(spec), "{text}");
    }
}

#[test]
fn what_was_written_about_layout_stays() {
    let plain: Spec = "sum f32[2,3]".parse().unwrap();
    let tagged: Spec = "sum f32[2,3]@ab".parse().unwrap();
    let strided: Spec = "sum f32[2,3]@(3,1)".parse().unwrap();
    assert_eq!(plain.inputs()[0].strides(), strided.inputs()[0].strides());
    assert_eq!(
        [plain.to_string(), tagged.to_string(), strided.to_string()],
        ["sum f32[2,3]", "sum f32[2,3]@ab", "sum f32[2,3]@(3,1)"]
    );
}

#[test]
fn the_builder_says_all_that_text_says() {
    let spec = Spec::builder("mean")
        .input_at(DType::F16, &[4, 5, 6], Layout::strides([-30, 6, 1]))
        .axes([-1, 0])
        .keep_dims(true)
        .accumulator(DType::F64)
        .round(Rounding::HalfEven)
        .output(DType::U8)
        .output_layout(Layout::tag("cba").unwrap())
        .build()
        .unwrap();
    let text = "mean f16[4,5,6]@(-30,6,1) axes=[0,2] keep_dims acc=f64 round_half_even -> u8@cba";
    assert_eq!(spec.to_string(), text);
    assert_eq!(text.parse(), Ok(spec.clone()));

    let (input, output) = (&spec.inputs()[0], &spec.outputs()[0]);
    assert_eq!((input.origin(), input.span_elems(), input.span_bytes(), input.elems()), (90, 120, 240, 120));
    assert_eq!((output.shape(), output.strides()), (&[1, 5, 1][..], &[1, 1, 5][..]));
    assert_eq!([0, 1, 2].map(|axis| spec.output_axis(0, axis)), [None, Some(1), None]);
    assert_eq!((spec.axes(), spec.reduced()), (vec![0, 2], &[true, false, true][..]));
    assert_eq!((spec.reduced_count(), spec.rank(), spec.keep_dims(), spec.saturate()), (24, 3, true, false));
    assert_eq!(
        (spec.accumulator(), spec.rounding(), spec.is_identity()),
        (Some(DType::F64), Rounding::HalfEven, false)
    );

    let lifted = Spec::builder("l2").input(DType::I32, &[3]).no_axes().empty_axes_lift().saturate().build().unwrap();
    assert_eq!(lifted.to_string(), "l2 i32[3] axes=[] empty_axes=lift saturate");
    let copied = Spec::builder("l2").input(DType::I32, &[3]).no_axes().empty_axes_identity().build().unwrap();
    assert!(copied.is_identity() && !lifted.is_identity());
    assert_eq!((copied.reduced_count(), copied.accumulator(), copied.reducers()[0].params()), (1, None, vec![]));
    let norm: Spec = "lp_sum(p=3) f32[2]".parse().unwrap();
    assert_eq!(
        (norm.reducers()[0].to_string(), norm.reducers()[0].params()),
        ("lp_sum(p=3)".to_string(), vec![3.0, 0.0])
    );
    assert_eq!(norm.reducers()[0].to_string(), "lp_sum(p=3)");
}
