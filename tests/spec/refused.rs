//! Every refused spec, with its exact message.

use cranefold::spec::{Dims, Rounding};
use cranefold::{DType, Spec};

const DTYPES: &str = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 bf16 f32 f64";
const WORDS: &str = "an operand as `f32[2,3]`, `axes=`, `keep_dims`, `empty_axes=`, `scalar NAME:DTYPE`, \
                     `map=`, `then=`, `apply=`, `acc=`, `order=`, `saturate`, `trunc`, \
                     `round_half_even` and `->`";

/// The message for an op that there is not.
fn unknown_op(name: &str) -> String {
    let ops: Vec<&str> = cranefold::ops::ROWS.iter().map(|row| row.name).collect();
    format!("unknown op `{name}`; the ops are {}", ops.join(", "))
}

#[test]
fn texts() {
    for (text, message) in [
        // Outside the grammar.
        ("", "column 1: expected the name of an op, found the end".to_string()),
        ("  7", "column 3: expected the name of an op, found `7`".into()),
        ("sum,", "column 5: expected the name of an op, found the end".into()),
        ("sum(p f32[2]", "column 7: expected `=`, found `f32`".into()),
        ("lp(p=x) f32[2]", "column 6: expected a number, found `x`".into()),
        ("lp(p=3 f32[2]", "column 8: expected `,` or `)`, found `f32`".into()),
        ("lp(3) f32[2]", "column 4: expected the name of a parameter, found `3`".into()),
        ("sum f32", "column 8: expected `[` and a shape, as in `f32[2,3]`, found the end".into()),
        ("sum f32[2", "column 10: expected `,` or `]`, found the end".into()),
        ("sum f32[2,]", "column 11: expected an extent or `]`, found `]`".into()),
        ("sum f32[é]", "column 9: expected an extent or `]`, found `é`".into()),
        ("sum f32[2.5]", "column 10: an extent is a number of elements, in digits alone, as in `[1000000]`".into()),
        ("sum f32[2]@", "column 12: expected a layout tag, `any`, `(` or `+`, found the end".into()),
        ("sum f32[2]@(x)", "column 13: expected a stride or `)`, found `x`".into()),
        ("sum f32[2]axes=[0]", "column 11: expected a space, found `axes`".into()),
        ("sum f32[2] axes", "column 16: expected `=`, found the end".into()),
        ("sum f32[2] axes=x", "column 17: expected an axis, a list such as `[0,2]`, or `all`, found `x`".into()),
        ("sum f32[2] axes=[-]", "column 18: expected an axis or `]`, found `-`".into()),
        ("sum f32[2] acc=", "column 16: expected a dtype, found the end".into()),
        ("sum f32[2] acc=f33", format!("column 16: `f33` is no dtype: did you mean `f32`?; the dtypes are {DTYPES}")),
        ("sum flt[2]", format!("column 5: `flt` is no dtype; the dtypes are {DTYPES}")),
        ("sum f32[2] empty_axes=all", "column 23: expected `identity` or `lift`, found `all`".into()),
        ("sum f32[2] ->", "column 14: expected a dtype or `@` and a layout, found the end".into()),
        (
            "sum f32[2] -> f64[2]",
            "column 18: the shape of the output follows from the axes, and `->` names its type alone; with `keep_dims` reduced \
             axes stay, with extent 1"
                .into(),
        ),
        (
            "sum f32[2] ; max",
            "column 12: `;` is the shell's, and stands outside of the quotes of a spec".into(),
        ),
        ("sum f32[2] keep_dimz", "column 12: unknown word `keep_dimz`: did you mean `keep_dims`?".into()),
        ("sum f32[2] wishes", format!("column 12: unknown word `wishes`; the words are {WORDS}")),
        ("sum f32[2] keepdims=maybe", "column 21: expected `true` or `false`, found `maybe`".into()),
        // The order of things.
        ("f32[64,512] mean", "column 1: the op comes first: `mean f32[64,512]`".into()),
        ("float32[64,512]", "column 1: the op comes first: `sum float32[64,512]`".into()),
        (
            "mean(f32[64,512], axes=1)",
            "column 6: operands stand after the op, not in its parentheses: `mean f32[64,512]`".into(),
        ),
        (
            "sum, f32[2]",
            "column 6: `f32` is a type, and no comma stands between the ops and the operands".into(),
        ),
        (
            "sum f32[2] max",
            "column 12: `max` is an op, and the ops come first, with commas between them: `sum, max f32[2,3]`".into(),
        ),
        (
            "sum f32[2] ddof=1",
            "column 12: no op of this spec has the parameter `ddof`; var, std, standardize have it".into(),
        ),
        ("var f32[2] ddof=one", "column 17: expected a number, found `one`".into()),
        ("var(ddof=1) f32[2] ddof=1", "parameter `ddof` of `var` is given twice".into()),
        (
            "sum f32[2] dtype=f64 -> f64",
            "column 12: `dtype=` and `->` both name the type of the output: one of them is enough".into(),
        ),
        ("max,argmax f32[2] dtype=f64", "`max, argmax` gives 2 outputs, 1 given".into()),
        ("sum f32[2] axis=0 axes=0", "column 19: `axes` is given twice".into()),
        ("sum f32[2] axes=0 axes=0", "column 19: `axes` is given twice".into()),
        ("sum f32[2] keep_dims keep_dims", "column 22: `keep_dims` is given twice".into()),
        ("sum f32[2] acc=f64 acc=f64", "column 20: `acc` is given twice".into()),
        ("sum f32[2] saturate saturate", "column 21: `saturate` is given twice".into()),
        ("sum f32[2] trunc trunc", "column 18: `trunc` is given twice".into()),
        ("sum f32[2] -> f64 -> f64", "column 19: `->` is given twice".into()),
        ("sum f32[99999999999999999999]", "column 9: `99999999999999999999` does not fit 64 bits".into()),
        // Ops and parameters.
        ("wish f32[2]", unknown_op("wish")),
        ("sum(p=2) f32[2]", "`sum` has no parameter `p`; it has none".into()),
        ("lp_max(q=2) f32[2]", "`lp_max` has no parameter `q`; it has p, eps".into()),
        ("lp(p=3,p=3) f32[2]", "parameter `p` of `lp` is given twice".into()),
        ("lp f32[2]", "`lp` needs the parameter `p`".into()),
        ("lp(p=0.5) f32[2]", "parameter `p` of `lp` must be finite and at least 1, 0.5 given".into()),
        ("lp(p=inf) f32[2]", "parameter `p` of `lp` must be finite and at least 1, inf given".into()),
        ("lp(p=nan) f32[2]", "parameter `p` of `lp` must be finite and at least 1, NaN given".into()),
        ("var(ddof=-1) f32[2]", "parameter `ddof` of `var` must be finite and at least 0, -1 given".into()),
        ("std(ddof=nan) f32[2]", "parameter `ddof` of `std` must be finite and at least 0, NaN given".into()),
        ("var(q=1) f32[2]", "`var` has no parameter `q`; it has ddof".into()),
        ("quantile(q=2) f32[2]", "parameter `q` of `quantile` must be at most 1, 2 given".into()),
        ("quantile(q=-0.5) f32[2]", "parameter `q` of `quantile` must be finite and at least 0, -0.5 given".into()),
        ("quantile f32[2]", "`quantile` needs the parameter `q`".into()),
        ("median(q=0.5) f32[2]", "`median` has no parameter `q`; it has none".into()),
        ("argmax(last=2) f32[2]", "`last` of `argmax` is 0 or 1, 2 given".into()),
        ("argmin(last=0.5) f32[2]", "`last` of `argmin` is 0 or 1, 0.5 given".into()),
        ("argmax(last,last) f32[2]", "parameter `last` of `argmax` is given twice".into()),
        ("argmax(first) f32[2]", "`argmax` has no parameter `first`; it has last".into()),
        (
            "l2_normalize(eps=-1) f32[2]",
            "parameter `eps` of `l2_normalize_max` must be finite and at least 0, -1 given".into(),
        ),
        ("lp_sum(p=1,eps=-inf) f32[2]", "parameter `eps` of `lp_sum` must be finite, -inf given".into()),
        (
            "lp_sum(p=1,eps=1e39) f32[2]",
            "parameter `eps` of `lp_sum` is 1000000000000000000000000000000000000000, which overflows the accumulator \
             type f32"
                .into(),
        ),
        // How many.
        ("sum axes=[0]", "`sum` takes 1 input, 0 given".into()),
        ("sum f32[2] f32[2]", "`sum` takes 1 input, 2 given".into()),
        ("sum f32[2] -> f32, f64", "`sum` gives 1 output, 2 given".into()),
        ("max,argmax f32[2,3] -> f32", "`max, argmax` gives 2 outputs, 1 given".into()),
        ("sum f32[2] then=\"r0, r0\" -> f32", "`then` gives 2 outputs, 1 given".into()),
        ("sum f32[2] apply=\"x0/r0\" -> f32, f32", "`apply` gives 1 output, 2 given".into()),
        ("layer_norm f32[2], f32[2], f32[2], f32[2]", "`layer_norm` takes 1 to 3 inputs, 4 given".into()),
        ("softmax f32[2,3], f32[3]", "`softmax` takes 1 input, 2 given".into()),
        ("sum f32[2]:then", "`sum` takes 1 input, 0 given".into()),
        ("min,max f32[2], f32[2]", "`min` takes 1 input, 2 given".into()),
        // Shapes, layouts, axes.
        ("sum f32[2,-3]", "extent -3 of axis 1 is negative".into()),
        (
            "sum f32[4611686018427387904]",
            "input 0: shape [4611686018427387904] of 4-byte elements is larger than 9223372036854775807 bytes".into(),
        ),
        (
            "sum f32[4294967296,4294967296,0]",
            "input 0: shape [4294967296,4294967296,0] of 4-byte elements is larger than 9223372036854775807 bytes"
                .into(),
        ),
        (
            "sum i8[3] axes=[] -> i64@(2000000000000000000)",
            "output 0: layout (2000000000000000000) over shape [3] of 8-byte elements spans more than \
             9223372036854775807 bytes"
                .into(),
        ),
        ("sum f32[2,3]@abc", "input 0: layout tag `abc` (`ncw`) names 3 axes for rank 2".into()),
        (
            "sum f32[2,3]@ac",
            "column 14: layout tag `ac` is neither one of each of the letters from `a` on nor a name such as `nchw`"
                .into(),
        ),
        ("sum f32[2,3]@ab16b", "column 14: layout tag `ab16b` blocks axis `b`, whose letter must be a capital".into()),
        ("sum f32[2,3]@aB", "column 14: layout tag `aB` has the capital `B` but no block of that axis".into()),
        ("sum f32[2,3]@aB1b", "column 14: a block of 1 elements: blocks have from 2 to 65536".into()),
        ("sum f32[2,3]@(3,1)4c", "column 14: block `4c` is of an axis that is out of range for rank 2".into()),
        ("sum f32[2,3]@(1)", "input 0: 1 strides for rank 2".into()),
        ("sum f32[2,3] axes=0 -> @(1,1)", "output 0: 2 strides for rank 1".into()),
        ("sum f32[2,3] axes=0 -> @(0)", "output 0: stride 0 of axis 0 would write one element 3 times".into()),
        (
            "sum f32[2,3,4] axes=0 -> @(1,2)",
            "output 0: stride 2 of axis 1 may write one element twice: it must reach over the 3 elements that the \
             smaller strides span"
                .into(),
        ),
        ("sum f32[2,3,4] axes=3", "axis 3 is out of range for rank 3: its axes are -3 to 2".into()),
        ("sum f32[2,3,4] axes=[0,-4]", "axis -4 is out of range for rank 3: its axes are -3 to 2".into()),
        ("sum f32[] axes=0", "axis 0 is out of range for rank 0, which takes only `axes=[]`".into()),
        ("sum f32[2,3] axes=[1,1]", "axis 1 is listed twice for rank 2".into()),
        ("sum f32[2,3] axes=[1,-1]", "axis 1 is listed twice for rank 2".into()),
        (
            "lp_max(p=3) f32[2] axes=[] empty_axes=identity",
            "`empty_axes=identity` is not for `lp_max`, which reduces groups of one over no axes".into(),
        ),
        // Types.
        ("sum bool[2]", "`sum` does not take bool; it takes integers and floats".into()),
        ("mean bool[2] -> f32", "`mean` does not take bool; it takes integers and floats".into()),
        ("all f32[2]", "`all` does not take f32; it takes bool".into()),
        ("any u8[2]", "`any` does not take u8; it takes bool".into()),
        ("log_sum i32[2]", "`log_sum` does not take i32; it takes floats".into()),
        ("lp_max(p=2) i8[2]", "`lp_max` does not take i8; it takes floats".into()),
        ("var i32[2]", "`var` does not take i32; it takes floats".into()),
        ("softmax bool[2]", "`softmax` does not take bool; it takes floats".into()),
        ("bit_and f32[2]", "`bit_and` does not take f32; it takes bool and integers".into()),
        ("max,var i32[2]", "`var` does not take i32; it takes floats".into()),
        ("any f32[2] map=\"x0\"", "`any` does not take f32; it takes bool".into()),
        ("sum f32[2] map=\"x0 > 0\"", "`sum` does not take bool; it takes integers and floats".into()),
        ("argmax f32[2] -> f32", "f32 output is refused for positions and counts, which are integers".into()),
        ("count_nonzero bool[2] -> bool", "bool output is refused for positions and counts, which are integers".into()),
        // A position is less than the number of elements, a count may be that.
        (
            "max,argmax f32[2,257] axes=[1] -> f32, u8",
            "u8 output is refused for positions and counts up to 256: it holds 255 at most".into(),
        ),
        (
            "count_nonzero f32[256] -> u8",
            "u8 output is refused for positions and counts up to 256: it holds 255 at most".into(),
        ),
        (
            "argmax i8[129] -> i8",
            "i8 output is refused for positions and counts up to 128: it holds 127 at most".into(),
        ),
        (
            "argmin u8[3,1000000000] -> i32",
            "i32 output is refused for positions and counts up to 2999999999: it holds 2147483647 at most".into(),
        ),
        (
            "mode f32[70000] -> f32, u16",
            "u16 output is refused for positions and counts up to 70000: it holds 65535 at most".into(),
        ),
        (
            "layer_norm f32[4], bool[4]",
            "`layer_norm` does not take bool; it takes numbers for its further inputs".into(),
        ),
        ("argmax f32[2] trunc", "positions and counts are exact: there is nothing to round or clamp".into()),
        ("min,max f32[2] -> f32, i32", "f32 input to i32 output needs `trunc` or `round_half_even`".into()),
        (
            "sum f32[2] then=\"r0 > 0\" -> u8",
            "bool from `then` to u8 output is refused: bool goes to bool only, and only bool goes to bool".into(),
        ),
        (
            "max bool[2] -> u8",
            "bool input to u8 output is refused: bool goes to bool only, and only bool goes to bool".into(),
        ),
        (
            "max f32[2] -> bool",
            "f32 input to bool output is refused: bool goes to bool only, and only bool goes to bool".into(),
        ),
        ("sum f32[2] -> i32", "f32 input to i32 output needs `trunc` or `round_half_even`".into()),
        ("sum f32[2] trunc round_half_even -> i32", "`trunc` and `round_half_even` exclude each other".into()),
        ("mean i32[2] trunc -> f32", "`trunc` is for integer outputs, the output is f32".into()),
        ("mean f32[2] round_half_even", "`round_half_even` is for integer outputs, the output is f32".into()),
        ("any bool[2] trunc", "`trunc` is for integer outputs, the output is bool".into()),
        (
            "sum f32[2] trunc saturate -> i32",
            "`saturate` is for integers to integers, given f32 input to i32 output; floats always saturate where they \
             become integers"
                .into(),
        ),
        (
            "sum i32[2] saturate -> f32",
            "`saturate` is for integers to integers, given i32 input to f32 output; floats always saturate where they \
             become integers"
                .into(),
        ),
        // What an expression gave its type is no input.
        (
            "max f32[2] map=\"x0 > 0\" -> f32",
            "bool from `map` to f32 output is refused: bool goes to bool only, and only bool goes to bool".into(),
        ),
        ("any f32[2] map=\"x0 > 0\" acc=f64", "`acc` is for floats, given bool from `map`".into()),
        (
            "sum i32[2] map=\"f32(x0)\" acc=f16",
            "acc=f16 is refused for f32 from `map`: f32 or f64 would be accepted".into(),
        ),
        ("sum i32[2] map=\"f32(x0)\" -> i32", "f32 from `map` to i32 output needs `trunc` or `round_half_even`".into()),
        (
            "sum i32[2] then=\"f64(r0)\" -> i32",
            "f64 from `then` to i32 output needs `trunc` or `round_half_even`".into(),
        ),
        (
            "sum f32[2] apply=\"x0 > r0\" -> u8",
            "bool from `apply` to u8 output is refused: bool goes to bool only, and only bool goes to bool".into(),
        ),
        (
            "max, combiner(identity=\"0\", lift=\"x0\", combine=\"a0+b0\") f32[2] -> f32, i32",
            "f32 from `lift` to i32 output needs `trunc` or `round_half_even`".into(),
        ),
        (
            "sum i32[2] map=\"f32(x0)\" trunc saturate -> i32",
            "`saturate` is for integers to integers, given f32 from `map` to i32 output; floats always saturate where \
             they become integers"
                .into(),
        ),
        ("sum i32[2] acc=f64", "`acc` is for floats, given i32 input".into()),
        ("sum f16[2] acc=f16", "acc=f16 is refused for f16 input: f32 or f64 would be accepted".into()),
        ("sum f64[2] acc=f32", "acc=f32 is refused for f64 input: f64 would be accepted".into()),
        ("sum f32[2] acc=i32", "acc=i32 is refused for f32 input: f32 or f64 would be accepted".into()),
        (
            "mean i32[2,0] axes=1",
            "`mean` of integers over nothing has no integer value: reduced axis 1 has extent 0".into(),
        ),
        ("sum,ptp i32[0]", "`ptp` of integers over nothing has no integer value: reduced axis 0 has extent 0".into()),
        ("mode i32[0]", "`mode` of integers over nothing has no integer value: reduced axis 0 has extent 0".into()),
        ("mode,max f32[2]", "`mode` does not stand with other reducers".into()),
        ("max,median f32[2]", "`median` does not stand with other reducers".into()),
        ("mode f32[2] -> f32", "`mode` gives 2 outputs, 1 given".into()),
        ("argmax f32[3,0] axes=[1]", "`argmax` of nothing has no position: reduced axis 1 has extent 0".into()),
        // What stands together.
        ("softmax,max f32[2,3]", "`softmax` does not stand with other reducers".into()),
        ("max,log_softmax f32[2,3]", "`log_softmax` does not stand with other reducers".into()),
        ("softmax f32[2,3] then=\"r0\"", "`softmax` does not stand with `then`".into()),
        ("softmax f32[2,3] apply=\"x0\"", "`softmax` does not stand with `apply`".into()),
        (
            "layer_norm f32[2,3], f32[3] map=\"x0*x1\"",
            "`layer_norm` with `map` takes 1 input, 2 given: its further inputs stand without `map`".into(),
        ),
        (
            "layer_norm f32[2,3], f32[3], f32[3] map=\"x0*2\"",
            "`layer_norm` with `map` takes 1 input, 3 given: its further inputs stand without `map`".into(),
        ),
        (
            "sum f32[2,3] then=\"r0\" apply=\"x0/r0\"",
            "`then` and `apply` exclude each other: `apply` reads the results itself".into(),
        ),
        (
            "min,max f32[2] axes=[] empty_axes=identity",
            "`empty_axes=identity` is not for `min`, which reduces groups of one over no axes".into(),
        ),
        // Words of expressions.
        (
            "sum f32[2] map=x0",
            "column 16: expected `\"`, found `x0`: an expression stands in double quotes, and in a shell the whole spec in \
             single ones, as in 'map=\"..\"'"
                .into(),
        ),
        ("sum f32[2] map=\"x0", "column 19: expected `\"`, found the end".into()),
        ("sum f32[2] map=\"x0\" map=\"x0\"", "column 21: `map` is given twice".into()),
        ("sum f32[2] then=\"r0\" then=\"r0\"", "column 22: `then` is given twice".into()),
        ("sum f32[2] apply=\"x0/r0\" apply=\"x0\"", "column 26: `apply` is given twice".into()),
        ("sum f32[2] map=\"x0, x0\"", "`map` is one expression, 2 given".into()),
        ("sum f32[2] apply=\"x0, x0/r0\"", "`apply` is one expression, 2 given".into()),
        ("sum f32[2]:wish", "column 12: expected `then`, found `wish`".into()),
        ("sum f32[2],", "column 12: expected an operand, found the end".into()),
        (
            "sum f32[2],max f32[2]",
            "column 12: `max` is an op, and the ops come first, with commas between them: `sum, max f32[2,3]`".into(),
        ),
        ("sum f32[2] -> f32,", "column 19: expected a dtype or `@` and a layout, found the end".into()),
        ("sum f32[2] scalar 2:f32", "column 19: expected the name of a scalar, found `2`".into()),
        ("sum f32[2] scalar e", "column 20: expected `:`, found the end".into()),
        (
            "sum f32[2] scalar e:f33",
            format!("column 21: `f33` is no dtype: did you mean `f32`?; the dtypes are {DTYPES}"),
        ),
        ("sum f32[2] scalar e:f32 scalar e:i32 then=\"r0*e\"", "the scalar `e` is given twice".into()),
        // What is not used.
        ("sum f32[2] scalar eps:f32", "scalar `eps` is not used".into()),
        ("sum f32[2] map=\"1\"", "input `x0` is not used".into()),
        ("sum f32[2], f32[2] map=\"x0\"", "input `x1` is not used".into()),
        ("sum f32[2], f32[]:then then=\"r0\"", "input `y0` is not used".into()),
        ("sum f32[2], f32[]:then", "input `y0` is not used".into()),
        ("layer_norm f32[2,3], f32[2] axes=[1]", "x1 of shape [2] does not broadcast to x0 of shape [2,3]".into()),
    ] {
        let error = text.parse::<Spec>().err().unwrap_or_else(|| panic!("`{text}` is accepted"));
        assert_eq!(error.kind().to_string(), message, "{text}");
        // The whole error has the text and a caret under the place besides.
        let place = error.place().unwrap_or_else(|| panic!("`{text}`: no place"));
        let indent = text[..place].chars().count();
        if text.len() > 60 {
            assert!(error.to_string().starts_with(&message) && error.to_string().ends_with('^'), "{error}");
            continue;
        }
        assert_eq!(error.to_string(), format!("{message}\n  {text}\n  {:indent$}^", ""), "{text}");
    }
}

/// The place of an error that only the build finds is the word, the op or the operand that is wrong.
#[test]
fn carets() {
    for (text, under) in [
        ("max,wish f32[2]", "wish"),
        ("max,lp(q=2) f32[2]", "lp(q=2)"),
        ("max,ReduceSum(p=2) f32[2]", "ReduceSum"),
        ("sum f32[2] f64[3]", "sum"),
        ("sum f32[2] -> f32, f64", "f64"),
        ("sum f32[2,-3]", "f32[2,-3]"),
        ("sum f32[2,3] -> f32@(1)", "f32@(1)"),
        ("sum f32[2,3] axes=[2]", "axes="),
        ("sum f32[2,3] keep_dims axes=[0,0]", "axes="),
        ("softmax bool[2]", "softmax"),
        ("sum f32[2] acc=f16", "acc="),
        ("sum f32[2] saturate", "saturate"),
        ("mean f32[2] trunc", "trunc"),
        ("sum f32[2] -> i8", "i8"),
        ("sum f32[2] scalar eps:f32", "eps"),
        ("sum f32[2] scalar x0:f32 then=\"r0*x0\"", "x0:f32"),
        ("sum f32[2], f32[]:then", "f32[]"),
        ("sum f32[2], f32[2] map=\"x0\"", "f32[2] map"),
        ("sum f32[2] then=\"r0\" apply=\"x0/r0\"", "apply"),
        ("sum f32[2] map=\"x0*z\"", "z"),
        ("min,max f32[2] axes=[] empty_axes=identity", "empty_axes"),
        ("sum f32[2] axis=3", "axis"),
        ("sum\n  float[2]", "float"),
        ("region x:f32[2] axes=[1] { sum(x) }", "axes="),
    ] {
        let error = text.parse::<Spec>().err().unwrap_or_else(|| panic!("`{text}` is accepted"));
        let place = error.place().unwrap_or_else(|| panic!("`{text}`: no place"));
        assert!(text[place..].starts_with(under), "`{text}` at `{}`: {error}", &text[place..]);
        assert!(error.to_string().trim_end().ends_with('^'), "{error}");
    }
}

/// The name that was meant: of ops by all their spellings, of dtypes also by those that differ between languages.
#[test]
fn nearest_names() {
    for (text, meant) in [
        ("meen f32[2]", "mean"),
        ("summ f32[2]", "sum"),
        ("ReduceMaen f32[2]", "ReduceMean"),
        ("softmx f32[2]", "softmax"),
        ("sum float[2]", "f32"),
        ("sum f23[2]", "f32"),
        ("sum byte[2]", "u8"),
        ("sum bf61[2]", "bf16"),
        ("sum long[2]", "i64"),
        ("sum f32[2] axs=0", "axes"),
        ("sum f32[2] keep_dim", "keep_dims"),
        ("region x:f32[2] axs=0 { sum(x) }", "axes"),
        ("region x:float[2] { sum(x) }", "f32"),
    ] {
        let error = text.parse::<Spec>().err().unwrap_or_else(|| panic!("`{text}` is accepted")).to_string();
        assert!(error.contains(&format!("did you mean `{meant}`?")), "{text}: {error}");
    }
}

#[test]
fn limits_are_reached_in_bounded_time() {
    let refuse = |text: &str| text.parse::<Spec>().unwrap_err().kind().to_string();
    let ones = |n: usize| format!("sum f32[{}]", vec!["1"; n].join(","));
    assert!(ones(64).parse::<Spec>().is_ok());
    assert_eq!(refuse(&ones(65)), "rank 65 is above the limit of 64");
    assert_eq!(refuse(&ones(49_000)), "rank 49000 is above the limit of 64");
    assert_eq!(refuse(&" ".repeat(100_001)), "the text has 100001 bytes; the limit is 100000");
    assert_eq!(
        refuse(&format!("sum f32[{}]", "9".repeat(90_000))),
        format!("column 9: `{}` does not fit 64 bits", "9".repeat(40))
    );
    assert_eq!(refuse(&"x".repeat(100_000)), unknown_op(&"x".repeat(40)));
    assert_eq!(
        refuse(&format!("sum f32[2]@{}", "a".repeat(90_000))),
        format!(
            "column 12: layout tag `{}` is neither one of each of the letters from `a` on nor a name such as `nchw`",
            "a".repeat(40)
        )
    );
}

#[test]
fn builders() {
    let refuse = |builder: cranefold::spec::Builder| builder.build().unwrap_err().to_string();
    let sum = || Spec::builder("sum");
    assert_eq!(refuse(sum()), "`sum` takes 1 input, 0 given");
    assert_eq!(refuse(sum().reducer("max")), "`sum` takes 1 input, 0 given");
    assert_eq!(
        refuse(sum().reducer("max").input(DType::F32, &[2]).output(DType::F32)),
        "`sum, max` gives 2 outputs, 1 given"
    );
    assert_eq!(refuse(sum().input(DType::F32, &[1; 65])), "rank 65 is above the limit of 64");
    assert_eq!(
        refuse(sum().input(DType::I8, &[u64::MAX])),
        "input 0: shape [18446744073709551615] of 1-byte elements is larger than 9223372036854775807 bytes"
    );
    assert_eq!(
        refuse(sum().input(DType::F32, &[2]).axes([i64::MIN])),
        format!("axis {} is out of range for rank 1: its axes are -1 to 0", i64::MIN)
    );
    assert_eq!(
        refuse(sum().input(DType::F32, &[2]).round(Rounding::Trunc)),
        "`trunc` is for integer outputs, the output is f32"
    );
    assert_eq!(
        refuse(sum().input(DType::F32, &[2]).output(DType::F32).output(DType::F64)),
        "`sum` gives 1 output, 2 given"
    );
}

/// The refusals of onednn_errors.json, and its further checks.
#[test]
fn dims_in_the_manner_of_onednn() {
    let from_dims = |op: &str, params: &[(&str, f64)], dtype: DType, src: &[i64], dst: &[i64]| {
        Spec::from_dims(op, params, Dims::new(dtype, src), Dims::new(dtype, dst)).map_err(|e| e.to_string())
    };
    let f32 = DType::F32;
    let refuse = |op, params, dtype, src, dst| from_dims(op, params, dtype, src, dst).unwrap_err();
    assert_eq!(
        refuse("sum", &[], f32, &[1, 1, 1, 4], &[1, 1, 1, 4]),
        "source and destination dims [1,1,1,4] are equal: nothing is reduced"
    );
    assert_eq!(refuse("eltwise_relu", &[], f32, &[1, 4], &[1, 1]), unknown_op("eltwise_relu"));
    assert_eq!(refuse("sum", &[], f32, &[-1, 1, 1, 4], &[-1, 1, 1, 1]), "extent -1 of axis 0 is negative");
    assert_eq!(
        refuse("norm_lp_max", &[("p", 0.5)], f32, &[1, 8, 4, 4], &[1, 8, 4, 1]),
        "parameter `p` of `lp_max` must be finite and at least 1, 0.5 given"
    );
    for op in ["norm_lp_max", "norm_lp_sum", "norm_lp_power_p_max", "norm_lp_power_p_sum"] {
        let message = refuse(op, &[("p", f64::INFINITY)], f32, &[1, 4], &[1, 1]);
        assert!(message.ends_with("must be finite and at least 1, inf given"), "{message}");
    }
    assert_eq!(refuse("sum", &[], f32, &[2, 3], &[2]), "source rank 2 and destination rank 1 differ");
    assert_eq!(refuse("sum", &[], f32, &[2, 3], &[2, 2]), "destination dim 2 of axis 1 must be 1 or 3");
    assert_eq!(
        refuse("norm_lp_max", &[("p", 2.0)], DType::I8, &[2, 3], &[2, 1]),
        "`lp_max` does not take i8; it takes floats"
    );
    let error = |text: &str| text.parse::<Spec>().unwrap_err().kind().to_string();
    assert_eq!(
        error("sum f32[2,3]@any"),
        "input 0: layout `any` is the layout of input 0, kept by an output, and of nothing else"
    );
    assert_eq!(error("sum f32[2,3]@ab+-1"), "offset -1 of a layout is negative");
    assert_eq!(error("sum f32[2,3]@aBcd16b"), "input 0: layout tag `aBcd16b` (`nChw16c`) names 4 axes for rank 2");
    assert_eq!(
        error("sum f32[2,1000]@aB16b axes=[0] -> @A12a"),
        "blocks that do not divide their axes, or one another, cut the spec into 146 boxes, above the limit of 64; \
         axis 1 alone into 146"
    );
    assert_eq!(
        error("sum f32[3,3,3,3,3,3,3]@ABCDEFG2a2b2c2d2e2f2g axes=[0,1]"),
        "blocks that do not divide their axes, or one another, cut the spec into 128 boxes, above the limit of 64; \
         axis 6 alone into 2"
    );

    assert_eq!(
        error("median i8[9223372036854775807]"),
        "`median` gathers 9223372036854775807 1-byte elements, above the limit of 4611686018427387904 bytes"
    );
    assert!("median i8[4611686018427387904]".parse::<Spec>().is_ok());

    let zero = from_dims("sum", &[], f32, &[0, 1, 1, 4], &[0, 1, 1, 1]).unwrap();
    assert_eq!(zero.to_string(), "sum f32[0,1,1,4] axes=[3] keep_dims");
}

/// Names of scalars that mean something else.
#[test]
fn names_of_scalars() {
    let taken = ["x0", "x", "y1", "r12", "a0", "b3", "d", "i", "n", "exp", "and", "f32", "inf"];
    for name in taken {
        let error = format!("sum f32[2] scalar {name}:f32").parse::<Spec>().unwrap_err();
        assert_eq!(
            error.kind().to_string(),
            format!(
                "`{name}` cannot name a scalar: a name is a word without a meaning in expressions, where x0, y0, r0, \
                 a0, b0 and the like, d, i and n have one"
            )
        );
    }
    for name in ["eps", "x0a", "delta", "k", "_", "X0", "sum", "then"] {
        let spec = format!("sum f32[2] scalar {name}:f32 then=\"r0 * {name}\"");
        assert_eq!(spec.parse::<Spec>().unwrap_or_else(|e| panic!("{spec}: {e}")).to_string(), spec);
    }
    let built = Spec::builder("sum").input(DType::F32, &[2]).scalar("no name", DType::F32).build();
    assert!(built.unwrap_err().to_string().starts_with("`no name` cannot name a scalar: "));
}
