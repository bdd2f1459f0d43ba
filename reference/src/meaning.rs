//! The meanings of the op table's rows, as the oracle knows them.
//!
//! The oracle reads the facts that a row declares (its name, the kinds of its results, whether it wraps): they are the
//! spec. The oracle has a computation of its own, by these enums: every `match` over them names each variant, so
//! that a meaning without its arm does not compile, and a row without its meaning is refused by name. An arm gives
//! `None` for elements that the row does not take.

/// The meaning of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Meaning {
    /// Results of a whole slice.
    Slice(OfSlice),
    /// A result at each position of a slice.
    Positions(OfPositions),
}

/// A reduction of a slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "each variant is a row's name")]
pub enum OfSlice {
    Sum,
    Prod,
    Min,
    Max,
    Mean,
    Any,
    All,
    L1,
    L2,
    SumSquares,
    LogSum,
    LogSumExp,
    SumExp,
    Norm(Norm),
    Linf,
    Ptp,
    CountNonzero,
    BitAnd,
    BitOr,
    BitXor,
    ArgMax,
    ArgMin,
    Var,
    Std,
    MeanPair,
    Median,
    MedianLow,
    Quantile,
    Mode,
}

/// A norm of S = sum |x|^p.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Norm {
    /// The part that eps has in it.
    pub eps: Eps,
    /// True if the p-th root is taken at the end.
    pub root: bool,
}

/// The part that eps has in a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Eps {
    /// The result has no eps.
    Absent,
    /// The norm is at least eps.
    Least,
    /// Eps is added to the norm.
    Added,
}

/// A result at each position, computed from the element there and the slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OfPositions {
    /// The element over a norm.
    Quotient(Divisor),
    /// exp(x - max) / sum exp(x - max), or its logarithm.
    Exponential {
        /// True for the logarithm.
        log: bool,
    },
    /// (x - mean) / sqrt(var + eps).
    LayerNorm,
    /// (x - mean) / std.
    Standardize,
}

/// A norm that elements are divided by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the match that computes them says what they are")]
pub enum Divisor {
    L1Add,
    L1Max,
    LinfAdd,
    LinfMax,
    L2Add,
    L2Max,
    L2MaxRoot,
    RootMeanSquare,
}

/// The dependence of a result of floats on its elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// A greater element makes no result less.
    Rising,
    /// An element of a greater magnitude makes no result less.
    RisingInMagnitude,
    /// No monotone dependence: elements may cancel.
    Free,
}

impl Meaning {
    /// The meaning of a row of the op table; none if the oracle does not know it.
    pub fn of(name: &str) -> Option<Meaning> {
        use OfSlice::*;
        let norm = |eps, root| Meaning::Slice(Norm(self::Norm { eps, root }));
        let over = |divisor| Meaning::Positions(OfPositions::Quotient(divisor));
        Some(match name {
            "sum" => Meaning::Slice(Sum),
            "prod" => Meaning::Slice(Prod),
            "min" => Meaning::Slice(Min),
            "max" => Meaning::Slice(Max),
            "mean" => Meaning::Slice(Mean),
            "any" => Meaning::Slice(Any),
            "all" => Meaning::Slice(All),
            "l1" => Meaning::Slice(L1),
            "l2" => Meaning::Slice(L2),
            "sum_squares" => Meaning::Slice(SumSquares),
            "log_sum" => Meaning::Slice(LogSum),
            "log_sum_exp" => Meaning::Slice(LogSumExp),
            "sum_exp" => Meaning::Slice(SumExp),
            "lp" => norm(Eps::Absent, true),
            "lp_max" => norm(Eps::Least, true),
            "lp_sum" => norm(Eps::Added, true),
            "lp_power_p_max" => norm(Eps::Least, false),
            "lp_power_p_sum" => norm(Eps::Added, false),
            "linf" => Meaning::Slice(Linf),
            "ptp" => Meaning::Slice(Ptp),
            "count_nonzero" => Meaning::Slice(CountNonzero),
            "bit_and" => Meaning::Slice(BitAnd),
            "bit_or" => Meaning::Slice(BitOr),
            "bit_xor" => Meaning::Slice(BitXor),
            "argmax" => Meaning::Slice(ArgMax),
            "argmin" => Meaning::Slice(ArgMin),
            "var" => Meaning::Slice(Var),
            "std" => Meaning::Slice(Std),
            "mean_pair" => Meaning::Slice(MeanPair),
            "median" => Meaning::Slice(Median),
            "median_low" => Meaning::Slice(MedianLow),
            "quantile" => Meaning::Slice(Quantile),
            "mode" => Meaning::Slice(Mode),
            "l1_normalize_add" => over(Divisor::L1Add),
            "l1_normalize_max" => over(Divisor::L1Max),
            "linf_normalize_add" => over(Divisor::LinfAdd),
            "linf_normalize_max" => over(Divisor::LinfMax),
            "l2_normalize_add" => over(Divisor::L2Add),
            "l2_normalize_max" => over(Divisor::L2Max),
            "l2_normalize_max_root" => over(Divisor::L2MaxRoot),
            "rms_norm" => over(Divisor::RootMeanSquare),
            "softmax" => Meaning::Positions(OfPositions::Exponential { log: false }),
            "log_softmax" => Meaning::Positions(OfPositions::Exponential { log: true }),
            "layer_norm" => Meaning::Positions(OfPositions::LayerNorm),
            "standardize" => Meaning::Positions(OfPositions::Standardize),
            _ => return None,
        })
    }
}

impl OfSlice {
    /// The dependence of the result on the elements.
    pub fn dependence(self) -> Dependence {
        use OfSlice::*;
        match self {
            Sum | Min | Max | Mean | LogSum | LogSumExp | Median | MedianLow | Quantile | Any | All => {
                Dependence::Rising
            }
            L1 | L2 | SumSquares | Norm(_) | Linf => Dependence::RisingInMagnitude,
            Prod | Ptp | CountNonzero | BitAnd | BitOr | BitXor | ArgMax | ArgMin | Mode => Dependence::Free,
            SumExp | Var | Std | MeanPair => Dependence::Free,
        }
    }
}
