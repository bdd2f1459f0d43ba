//! Variances and standard deviations.

use super::Case;

pub const CASES: &[Case] = &[
    ("var f32[4]", "1 2 3 4", "1.25"),
    ("var(ddof=1) f32[4]", "1 2 3 4", "1.6666666"),
    ("var(ddof=0.5) f32[4]", "1 2 3 4", "1.4285715"),
    ("std f32[2]", "1 3", "1"),
    ("std(ddof=1) f32[2]", "1 3", "1.4142135"),
    ("var f16[3]", "1 2 3", "0.66650390625"),
    ("var f16[3] -> f32", "1 2 3", "0.6666667"),
    ("var bf16[2] acc=f64 -> f64", "1 2", "0.25"),
    ("var f32[2] trunc -> i32", "0 11", "30"),
    // One element, and fewer than ddof leaves.
    ("var f32[1]", "7", "0"),
    ("var(ddof=1) f32[1]", "7", "nan"),
    ("var(ddof=2) f32[1]", "7", "nan"),
    ("var(ddof=2) f32[2]", "1 3", "inf"),
    ("var(ddof=3) f32[2]", "1 3", "inf"),
    ("std(ddof=2) f64[2]", "1 3", "inf"),
    ("var(ddof=2) f32[2]", "5 5", "nan"),
    ("var f32[0]", "", "nan"),
    ("std(ddof=1) f32[2,0] axes=[1]", "", "nan nan"),
    ("var f32[0,2] axes=[1]", "", ""),
    ("var f32[2] axes=[]", "3 -7", "0 0"),
    ("var(ddof=1) f32[2] axes=[]", "3 -7", "nan nan"),
    ("var f32[2] axes=[]", "inf nan", "nan nan"),
    // What has no mean.
    ("var f32[3]", "1 inf 2", "nan"),
    ("var f32[3]", "1 -inf inf", "nan"),
    ("std f32[3]", "1 nan 2", "nan"),
    ("var f32[9000]", "8999*1 inf", "nan"),
    ("var f64[9000]", "nan 8999*1", "nan"),
    // The mean of three even integers near 2^24 is right in two looks.
    ("var f32[3]", "16777216 16777218 16777220", "2.6666667"),
    ("var f32[5000]", "5000*3", "0"),
    ("std f64[70,2] axes=[0]", "140*-1024", "0 0"),
    ("mean,var f32[4]", "1 2 3 4", "2.5 ; 1.25"),
    ("mean,var,std(ddof=1),count_nonzero f32[2]", "1 3", "2 ; 1 ; 1.4142135 ; 2"),
    ("sum,var f32[2,2] axes=[0]", "1 2 3 6", "4 8 ; 1 4"),
    ("var f32[2,2]@(0,1) axes=[0]", "3 4", "0 0"),
    ("var f32[4]@(-1)", "4 3 2 1", "1.25"),
];
