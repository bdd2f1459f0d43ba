//! Expressions: what they print as, what they compute, and what is refused where.

mod errors;
mod text;
mod values;

use cranefold_ir::expression::{Expression, ExpressionError};
use cranefold_ir::{Buffer, BufferRole, DType, Def, Nest, Scalar, verify};

/// The definition of an expression over parameters.
pub fn def_of(expression: &Expression, names: &[(&str, DType)], literal: DType) -> Result<Def, ExpressionError> {
    let types: Vec<DType> = names.iter().map(|(_, d)| *d).collect();
    let mut result = Ok(());
    let def = Def::build("f", &types, |lets, args| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).zip(args.iter().cloned()).collect();
        match expression.build(lets, &names, literal) {
            Ok(value) => vec![value],
            Err(error) => {
                result = Err(error);
                vec![]
            }
        }
    });
    result.map(|()| def)
}

/// That the verifier takes a definition.
pub fn verified(def: &Def) {
    let buffers = vec![Buffer { role: BufferRole::Out, dtype: DType::F32, len: 1 }];
    let nest = Nest { name: String::new(), buffers, defs: vec![def.clone()], body: vec![] };
    verify(&nest).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(nest.to_string().parse(), Ok(nest));
}

/// The value of an expression, NaN canonical, with numbers as f32.
pub fn value(text: &str, args: &[(&str, Scalar)]) -> Scalar {
    let expression: Expression = text.parse().unwrap_or_else(|e| panic!("{e}"));
    let names: Vec<_> = args.iter().map(|(name, s)| (*name, s.dtype())).collect();
    let def = def_of(&expression, &names, DType::F32).unwrap_or_else(|e| panic!("{e}"));
    verified(&def);
    let values: Vec<Scalar> = args.iter().map(|(_, s)| *s).collect();
    let value = def.eval(&values)[0];
    if value.is_nan() { Scalar::nan(value.dtype()) } else { value }
}

/// A value of a type from its text: `-0.0:f32`.
pub fn scalar(text: &str) -> Scalar {
    let (value, dtype) = text.split_once(':').expect("a value, a colon and a dtype");
    Scalar::parse(dtype.parse().expect("a dtype"), value).unwrap_or_else(|| panic!("{text}"))
}
