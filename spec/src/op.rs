//! The ops of the table as functions, with their parameters as methods: a name or a parameter that there is not does not
//! compile.
//!
//! ```
//! use cranefold_spec::{DType, Spec, op};
//!
//! let spec = Spec::builder(op::var().ddof(1)).reducer(op::argmax().last()).input(DType::F32, &[64, 512]).axes(1).build()?;
//! assert_eq!(spec.to_string(), "var(ddof=1), argmax(last) f32[64,512] axes=[1]");
//! # Ok::<(), cranefold_spec::SpecError>(())
//! ```
//!
//! ```compile_fail,E0599
//! cranefold_spec::op::mean().ddof(1);
//! ```

/// An op by its name or an alias, with parameters by name. Only [`Builder::build`](crate::Builder::build) checks one that is
/// made of text.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedOp {
    pub(crate) name: String,
    pub(crate) params: Vec<(String, f64)>,
}

impl NamedOp {
    fn new(name: &str) -> NamedOp {
        NamedOp { name: name.into(), params: vec![] }
    }

    fn with(mut self, param: &str, value: f64) -> NamedOp {
        self.params.push((param.into(), value));
        self
    }
}

impl From<&str> for NamedOp {
    fn from(name: &str) -> NamedOp {
        NamedOp::new(name)
    }
}

impl From<&String> for NamedOp {
    fn from(name: &String) -> NamedOp {
        NamedOp::new(name)
    }
}

macro_rules! plain {
    ($($name:ident)*) => {$(
        #[doc = concat!("The op `", stringify!($name), "`.")]
        pub fn $name() -> NamedOp {
            NamedOp::new(stringify!($name))
        }
    )*};
}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident { $($(#[$param_doc:meta])* $param:ident)* })*) => {$(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq)]
        #[must_use]
        pub struct $kind(NamedOp);

        impl $kind {
            $(
                $(#[$param_doc])*
                pub fn $param(self, value: impl Into<f64>) -> $kind {
                    $kind(self.0.with(stringify!($param), value.into()))
                }
            )*
        }

        impl From<$kind> for NamedOp {
            fn from(op: $kind) -> NamedOp {
                op.0
            }
        }
    )*};
}

macro_rules! of_kind {
    ($($name:ident($($needed:ident),*) -> $kind:ident;)*) => {$(
        #[doc = concat!("The op `", stringify!($name), "`.")]
        pub fn $name($($needed: impl Into<f64>),*) -> $kind {
            $kind(NamedOp::new(stringify!($name))$(.with(stringify!($needed), $needed.into()))*)
        }
    )*};
}

plain! {
    sum prod min max mean any all l1 l2 sum_squares log_sum log_sum_exp sum_exp linf ptp count_nonzero bit_and bit_or bit_xor
    mean_pair median median_low mode softmax log_softmax
}

kinds! {
    /// An op whose parameters are all given.
    Complete {}
    /// A norm of oneDNN's.
    Norm {
        /// The least norm, or what is added to it.
        eps
    }
    /// The position of an extreme.
    Position {}
    /// A variance or its root.
    Deviation {
        /// The degrees of freedom: the squares are divided by the number of elements less these.
        ddof
    }
    /// A normalisation.
    Normalisation {
        /// The number that keeps the divisor from zero.
        eps
    }
    /// A standardisation.
    Standardisation {
        /// The degrees of freedom.
        ddof
    }
}

impl Position {
    /// The last position of several with the extreme, where the first is the default.
    pub fn last(self) -> Position {
        Position(self.0.with("last", 1.0))
    }
}

of_kind! {
    lp(p) -> Complete;
    quantile(q) -> Complete;
    lp_max(p) -> Norm;
    lp_sum(p) -> Norm;
    lp_power_p_max(p) -> Norm;
    lp_power_p_sum(p) -> Norm;
    argmax() -> Position;
    argmin() -> Position;
    var() -> Deviation;
    std() -> Deviation;
    l1_normalize_add() -> Normalisation;
    l1_normalize_max() -> Normalisation;
    linf_normalize_add() -> Normalisation;
    linf_normalize_max() -> Normalisation;
    l2_normalize_add() -> Normalisation;
    l2_normalize_max() -> Normalisation;
    l2_normalize_max_root() -> Normalisation;
    layer_norm() -> Normalisation;
    rms_norm() -> Normalisation;
    standardize() -> Standardisation;
}

#[cfg(test)]
mod tests {
    use cranefold_ir::ops::ROWS;

    /// The functions are the rows of the table, and their parameters the rows'.
    #[test]
    fn every_row_has_its_function() {
        let source = include_str!("op.rs");
        let plain = source.split("plain! {\n").nth(1).expect("the list").split('}').next().expect("its end");
        let of_kind = source.split("of_kind! {\n").nth(1).expect("the list").split('}').next().expect("its end");
        let mut params: Vec<(String, Vec<&str>)> =
            plain.split_whitespace().map(|name| (name.to_string(), vec![])).collect();
        for line in of_kind.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let (name, rest) = line.split_once('(').expect("a function");
            let (needed, kind) = rest.split_once(") -> ").expect("a kind");
            let own: &[&str] = match kind.trim_end_matches(';') {
                "Complete" => &[],
                "Norm" | "Normalisation" => &["eps"],
                "Position" => &["last"],
                _ => &["ddof"],
            };
            let all = needed.split(',').filter(|name| !name.is_empty()).chain(own.iter().copied());
            params.push((name.to_string(), all.collect()));
        }
        params.sort();
        let mut rows: Vec<(String, Vec<&str>)> =
            ROWS.iter().map(|row| (row.name.to_string(), row.params.iter().map(|p| p.name).collect())).collect();
        rows.sort();
        assert_eq!(params, rows);
    }
}
