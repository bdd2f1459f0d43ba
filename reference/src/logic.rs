//! Truth values.

use super::exact::{Exact, Value};
use super::meaning::OfSlice;

/// The result of truth values; none where the reduction takes none.
pub fn reduce(op: OfSlice, mut elements: impl Iterator<Item = bool>) -> Option<Exact> {
    let result = match op {
        OfSlice::Any | OfSlice::Max | OfSlice::BitOr => elements.any(|truth| truth),
        OfSlice::All | OfSlice::Min | OfSlice::BitAnd => elements.all(|truth| truth),
        OfSlice::BitXor => elements.filter(|&truth| truth).count() % 2 == 1,
        OfSlice::Sum | OfSlice::Prod | OfSlice::Mean | OfSlice::L1 | OfSlice::L2 | OfSlice::SumSquares => return None,
        OfSlice::LogSum | OfSlice::LogSumExp | OfSlice::Norm(_) | OfSlice::Linf | OfSlice::Ptp => return None,
        OfSlice::ArgMax | OfSlice::ArgMin | OfSlice::CountNonzero | OfSlice::Mode => return None,
        OfSlice::SumExp | OfSlice::MeanPair => return None,
        OfSlice::Var | OfSlice::Std | OfSlice::Median | OfSlice::MedianLow | OfSlice::Quantile => return None,
    };
    Some(Exact::certain(Value::Bool(result)))
}
