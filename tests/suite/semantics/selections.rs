//! The corner cases of order statistics: infinite elements above all.

use super::Case;

pub const CASES: &[Case] = &[
    // One infinite neighbour is the value at any share of it.
    ("median f32[2]", "-inf 5", "-inf"),
    ("median f32[2]", "5 inf", "inf"),
    ("quantile(q=0.5) f32[2]", "-inf 5", "-inf"),
    ("quantile(q=0.5) f32[2]", "5 inf", "inf"),
    ("quantile(q=0.5) f64[2]", "5 -inf", "-inf"),
    ("quantile(q=0.5) f16[2]", "inf 5", "inf"),
    ("quantile(q=0.5) bf16[2]", "5 -inf", "-inf"),
    ("quantile(q=0.999) f32[2]", "-inf 5", "-inf"),
    ("quantile(q=0.001) f32[2]", "5 inf", "inf"),
    ("quantile(q=0.9) f32[2]", "-inf 3.4e38", "-inf"),
    // A share that is 0 in the accumulator's type is a share all the same.
    ("quantile(q=1e-300) f32[2]", "5 inf", "inf"),
    ("quantile(q=1e-300) f32[2] acc=f64", "5 inf", "inf"),
    // On an element there is no share of the next.
    ("quantile(q=0) f32[2]", "5 inf", "5"),
    ("quantile(q=1) f32[2]", "-inf 5", "5"),
    ("quantile(q=0) f32[2]", "-inf 5", "-inf"),
    ("quantile(q=0.5) f32[3]", "inf 5 -inf", "5"),
    // Several infinities: equal neighbours are the value, opposite ones have none between them.
    ("quantile(q=0.5) f32[4]", "-inf -inf 5 6", "-inf"),
    ("quantile(q=0.25) f32[4]", "-inf -inf 5 6", "-inf"),
    ("quantile(q=0.7) f32[4]", "-inf -inf 5 6", "5.1"),
    ("quantile(q=0.5) f32[4]", "5 6 inf inf", "inf"),
    ("quantile(q=0.9) f32[4]", "5 6 inf inf", "inf"),
    ("quantile(q=0.5) f32[2]", "-inf inf", "nan"),
    ("median f32[2]", "-inf inf", "nan"),
    ("quantile(q=0.25) f64[2]", "inf -inf", "nan"),
    ("quantile(q=0.5) f32[2]", "-inf -inf", "-inf"),
    ("quantile(q=0.5) f32[2]", "inf inf", "inf"),
    ("quantile(q=0.5) f32[3,2] axes=[0]", "-inf 1 5 inf 6 inf", "5 inf"),
    ("quantile(q=0.5) f32[2] trunc -> i32", "-inf 5", "-2147483648"),
    // NaN anywhere.
    ("quantile(q=0.5) f32[2]", "-inf nan", "nan"),
    ("quantile(q=0) f32[3]", "-inf 5 nan", "nan"),
    ("quantile(q=0.5) f32[4]", "inf nan inf inf", "nan"),
    ("quantile(q=0.5) f32[0]", "", "nan"),
    ("median_low f32[2]", "5 -inf", "-inf"),
    // Finite elements, also those whose distance overflows.
    ("quantile(q=0.25) f32[2]", "-1 1", "-0.5"),
    ("quantile(q=0.5) f32[2]", "-3e38 3e38", "0"),
    ("quantile(q=0.5) f32[2]", "-0 0", "-0"),
];
