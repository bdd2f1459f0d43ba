//! Extents and axes as integers of any type.

use super::SpecError;

mod sealed {
    pub trait Sealed {}
}

/// An integer type that extents and axes may have.
pub trait Integer: sealed::Sealed + Copy {
    /// The number, which every type here fits.
    #[doc(hidden)]
    fn number(self) -> i128;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl sealed::Sealed for $type {}
        impl Integer for $type {
            fn number(self) -> i128 {
                self as i128
            }
        }
        impl IntoAxes for $type {
            fn numbers(self) -> Vec<i128> {
                vec![self.number()]
            }
        }
    )*};
}

/// Axes: one integer, or an array, a slice or a list of them. Negative ones count from the end.
pub trait IntoAxes {
    /// The numbers.
    #[doc(hidden)]
    fn numbers(self) -> Vec<i128>;
}

integers! { i32 i64 isize u32 u64 usize }

fn all<T: Integer>(axes: &[T]) -> Vec<i128> {
    axes.iter().map(|axis| axis.number()).collect()
}

impl<T: Integer, const N: usize> IntoAxes for [T; N] {
    fn numbers(self) -> Vec<i128> {
        all(&self)
    }
}

impl<T: Integer, const N: usize> IntoAxes for &[T; N] {
    fn numbers(self) -> Vec<i128> {
        all(self)
    }
}

impl<T: Integer> IntoAxes for &[T] {
    fn numbers(self) -> Vec<i128> {
        all(self)
    }
}

impl<T: Integer> IntoAxes for Vec<T> {
    fn numbers(self) -> Vec<i128> {
        all(&self)
    }
}

impl<T: Integer> IntoAxes for &Vec<T> {
    fn numbers(self) -> Vec<i128> {
        all(self)
    }
}

/// The axes as the spec has them; a number that fits no `i64` is as much out of range as the nearest that does.
pub(crate) fn axes(given: impl IntoAxes) -> Vec<i64> {
    given.numbers().into_iter().map(|axis| axis.clamp(i64::MIN.into(), i64::MAX.into()) as i64).collect()
}

/// The extents of a shape; a negative one is an error.
pub(crate) fn extents(shape: &[impl Integer]) -> Result<Vec<u64>, SpecError> {
    let extent = |(axis, extent): (usize, i128)| {
        u64::try_from(extent)
            .map_err(|_| SpecError::NegativeExtent { axis, extent: extent.max(i64::MIN.into()) as i64 })
    };
    shape.iter().map(|extent| extent.number()).enumerate().map(extent).collect()
}
